//! Takes out of a reply what no two runs share.

use std::time::{SystemTime, UNIX_EPOCH};

use bson::spec::BinarySubtype;
use bson::{Bson, Document};

use super::case::Directives;
use crate::shell::{Placeholder, placeholder};

/// Top-level fields of a reply that tell of the moment or the machine.
const VOLATILE: [&str; 6] =
    ["operationTime", "$clusterTime", "electionId", "opTime", "$gleStats", "lastCommittedOpTime"];

/// Fields of an `explain` that depend on the machine, the moment or the inside of a plan stage.
const VOLATILE_IN_EXPLAIN: [&str; 17] = [
    "serverInfo",
    "serverParameters",
    "executionTimeMillis",
    "executionTimeMillisEstimate",
    "queryHash",
    "planCacheKey",
    "works",
    "needTime",
    "needYield",
    "saveState",
    "restoreState",
    "slotBasedPlan",
    "explainVersion",
    "maxIndexedOrSolutionsReached",
    "maxIndexedAndSolutionsReached",
    "maxScansToExplodeReached",
    "command",
];

/// A date, timestamp or ObjectId this close to now was made by the server, or by the clock.
const NOW_SECONDS: i64 = 600;

/// The reply, or the documents of a drained cursor, with volatile values dropped or replaced by placeholders.
pub fn normalize(output: Bson, command: &Document, directives: &Directives) -> Bson {
    let explain =
        command.keys().next().is_some_and(|name| name == "explain") || command.get_bool("explain").unwrap_or(false);
    let mut dropped: Vec<&str> = directives.ignore.iter().map(String::as_str).collect();
    if explain {
        dropped.extend(VOLATILE_IN_EXPLAIN);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs() as i64);
    let walk = Walk { now, dropped };
    let Bson::Document(reply) = output else { return walk.value("", output) };
    let mut normal = Document::new();
    for (name, value) in reply {
        let wanted = directives.only.is_empty() || directives.only.contains(&name);
        if wanted && !VOLATILE.contains(&name.as_str()) && !walk.dropped.contains(&name.as_str()) {
            let value = if name == "cursor" { hide_cursor_id(value) } else { value };
            normal.insert(name.clone(), walk.value(&name, value));
        }
    }
    Bson::Document(normal)
}

struct Walk<'a> {
    now: i64,
    dropped: Vec<&'a str>,
}

impl Walk<'_> {
    fn value(&self, name: &str, value: Bson) -> Bson {
        match value {
            Bson::Document(document) => Bson::Document(
                document
                    .into_iter()
                    .filter(|(name, _)| !self.dropped.contains(&name.as_str()))
                    .map(|(name, value)| {
                        let value = self.value(&name, value);
                        (name, value)
                    })
                    .collect(),
            ),
            Bson::Array(items) => Bson::Array(items.into_iter().map(|item| self.value(name, item)).collect()),
            Bson::ObjectId(id) if self.is_now(id.timestamp().timestamp_millis() / 1000) => {
                placeholder(Placeholder::Oid)
            }
            Bson::DateTime(date) if self.is_now(date.timestamp_millis() / 1000) => placeholder(Placeholder::Now),
            Bson::Timestamp(ts) if self.is_now(i64::from(ts.time)) => placeholder(Placeholder::Ts),
            Bson::Binary(binary)
                if binary.subtype == BinarySubtype::Uuid
                    && matches!(name, "uuid" | "collectionUUID" | "ui" | "id" | "dropTarget") =>
            {
                placeholder(Placeholder::Uuid)
            }
            Bson::String(_) if name == "_data" => placeholder(Placeholder::Token),
            other => other,
        }
    }

    fn is_now(&self, seconds: i64) -> bool {
        (seconds - self.now).abs() <= NOW_SECONDS
    }
}

fn hide_cursor_id(value: Bson) -> Bson {
    let Bson::Document(mut cursor) = value else { return value };
    if cursor.get_i64("id").is_ok_and(|id| id != 0) {
        cursor.insert("id", placeholder(Placeholder::Cursor));
    }
    Bson::Document(cursor)
}
