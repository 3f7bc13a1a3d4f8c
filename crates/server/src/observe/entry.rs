//! One entry of `system.profile`, in MongoDB's shape and order.

use espalier_value::{DocBuf, RawDoc};

use super::{Finished, namespace, redact};
use crate::call::Statement;
use crate::clock;
use crate::reply::{DocWriter, build as build_doc};

/// A larger command is not shown, as in MongoDB.
const COMMAND_BYTES_MAX: usize = 50 * 1024;

/// The entry of a command, or of one statement of it.
pub(super) fn build(finished: &Finished<'_, '_>, statement: Option<&Statement>) -> DocBuf {
    let Finished { command, request, call, .. } = *finished;
    let told = &call.told;
    let ns = match namespace(command, request) {
        Some((db, collection)) => format!("{db}.{collection}"),
        None => format!("{}.$cmd", request.db),
    };
    build_doc(|doc| {
        doc.append("op", finished.kind().name()).append("ns", &ns);
        match statement {
            Some(statement) => append_command(doc, "command", statement.command.as_raw()),
            None => append_command(doc, "command", redact::command(request.body).as_raw()),
        }
        if let Some(origin) = &told.origin {
            append_command(doc, "originatingCommand", origin.as_raw());
        }
        if let Some(id) = told.cursor_id {
            doc.append("cursorid", id);
        }
        let plan = call.work.plan();
        let (keys, docs) = match statement {
            Some(statement) => statement.examined,
            None => (finished.keys_examined, finished.docs_examined),
        };
        if plan.is_some() {
            doc.append_count("keysExamined", keys).append_count("docsExamined", docs);
        }
        if call.work.has_sorted() {
            doc.append("hasSortStage", true);
        }
        let counts = statement.map_or(&told.counts, |statement| &statement.counts);
        for (name, count) in counts.shown() {
            doc.append_count(name, *count);
        }
        if told.cursor_exhausted {
            doc.append("cursorExhausted", true);
        }
        doc.append("numYield", 0);
        if told.is_read {
            doc.append_count("nreturned", told.returned);
        }
        if let Some(error) = finished.error {
            doc.append("ok", 0.0).append("errMsg", error.message());
            doc.append("errName", &error.code().name()).append("errCode", error.code().0);
        }
        doc.doc("locks");
        let mut elapsed = finished.millis();
        match statement {
            Some(statement) => elapsed = i64::try_from(statement.elapsed.as_millis()).unwrap_or(i64::MAX),
            None => {
                doc.append_count("responseLength", finished.response_bytes as u64);
                doc.append("protocol", if call.legacy { "op_query" } else { "op_msg" });
            }
        }
        doc.append_count("millis", u64::try_from(elapsed).unwrap_or(0));
        if let Some(plan) = plan {
            doc.append("planSummary", &plan);
        }
        doc.append_date("ts", clock::now_ms()).append("client", &call.client.peer.ip().to_string());
        if let Some(name) = app_name(call.client.metadata()) {
            doc.append("appName", name);
        }
        let users = call.client.users();
        {
            let mut all = doc.array("allUsers");
            for user in &users {
                all.push_doc().append("user", &user.user).append("db", &user.db);
            }
        }
        let user = users.first().map(|user| format!("{}@{}", user.user, user.db)).unwrap_or_default();
        doc.append("user", &user);
    })
}

fn app_name(metadata: Option<RawDoc<'_>>) -> Option<&str> {
    metadata?.get_doc("application")?.get_str("name")
}

fn append_command(doc: &mut DocWriter<'_>, name: &str, command: RawDoc<'_>) {
    if command.as_bytes().len() <= COMMAND_BYTES_MAX {
        doc.append(name, command);
        return;
    }
    doc.doc(name).append("$truncated", &redact::Shown(command).to_string());
}
