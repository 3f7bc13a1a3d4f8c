//! What is stored after a restart, against what the writers know.

use std::collections::{BTreeMap, BTreeSet};

use bson::{Bson, Document, doc};

use super::DB;
use super::ledger::{Ledger, State};
use crate::client::Client;
use crate::error::{Result, err};
use crate::process::Killable;

/// How many violations are shown; the first few tell what the rest would.
const SHOWN_MAX: usize = 10;

/// Checks everything and returns how many documents that was; the ledgers then know what is there.
pub fn check(server: &impl Killable, ledgers: &mut [Ledger]) -> Result<u64> {
    let mut client = server.connect()?;
    let mut problems = Vec::new();
    let main = read_all(&mut client, "main")?;
    let unique = read_all(&mut client, "unique")?;
    let (main_states, unique_states) = (main_states(&main, &mut problems), unique_states(&unique, &mut problems));
    let mut checked = 0;
    for ledger in ledgers.iter_mut() {
        let own = |states: &BTreeMap<i64, i64>| -> BTreeMap<i64, i64> {
            states.iter().filter(|(id, _)| ledger.owns(**id)).map(|(id, n)| (*id, *n)).collect()
        };
        let (documents, keys) = (own(&main_states), own(&unique_states));
        let known = |stored: &BTreeMap<i64, i64>, known: &BTreeMap<i64, i64>, flying: &BTreeMap<i64, State>| {
            stored.keys().chain(known.keys()).chain(flying.keys()).copied().collect::<BTreeSet<i64>>()
        };
        for id in known(&documents, &ledger.documents, &ledger.in_flight) {
            checked += 1;
            compare("main", id, documents.get(&id).copied(), ledger.allowed(id), &mut problems);
        }
        for id in known(&keys, &ledger.unique, &ledger.unique_in_flight) {
            checked += 1;
            compare("unique", id, keys.get(&id).copied(), ledger.allowed_unique(id), &mut problems);
        }
        ledger.settle(documents, keys);
    }
    check_indexes(&mut client, ledgers, &mut problems)?;
    for collection in ["main", "unique"] {
        let reply = client.must(DB, &doc! { "validate": collection })?;
        if !reply.get_bool("valid").unwrap_or(false) {
            problems.push(format!("{collection} is not valid: {reply}"));
        }
    }
    if problems.is_empty() {
        return Ok(checked);
    }
    let count = problems.len();
    problems.truncate(SHOWN_MAX);
    Err(err!("{count} violations\n  {}", problems.join("\n  ")))
}

pub(super) fn compare(
    collection: &str,
    id: i64,
    found: State,
    allowed: (State, Option<State>),
    problems: &mut Vec<String>,
) {
    let (before, after) = allowed;
    if found != before && Some(found) != after {
        problems.push(format!("{collection} {id}: acknowledged {before:?}, in flight {after:?}, found {found:?}"));
    }
}

pub(super) fn main_states(documents: &[Document], problems: &mut Vec<String>) -> BTreeMap<i64, i64> {
    let mut states = BTreeMap::new();
    for document in documents {
        match (document.get_i64("_id"), document.get_i64("n"), document.get_i64("mirror"), document.get_str("fill")) {
            (Ok(id), Ok(n), Ok(mirror), Ok(fill)) if n == mirror && fill.len() == 100 => {
                if states.insert(id, n).is_some() {
                    problems.push(format!("main {id} is there twice"));
                }
            }
            _ => problems.push(format!("half applied: {document}")),
        }
    }
    states
}

pub(super) fn unique_states(documents: &[Document], problems: &mut Vec<String>) -> BTreeMap<i64, i64> {
    let (mut states, mut keys) = (BTreeMap::new(), BTreeSet::new());
    for document in documents {
        let (Ok(id), Ok(key)) = (document.get_i64("_id"), document.get_i64("key")) else {
            problems.push(format!("half applied: {document}"));
            continue;
        };
        states.insert(id, key);
        if !keys.insert(key) {
            problems.push(format!("the unique key {key} is there twice"));
        }
    }
    states
}

/// An acknowledged index is there, a dropped one is not; one in flight is from now on what it is.
fn check_indexes(client: &mut Client, ledgers: &mut [Ledger], problems: &mut Vec<String>) -> Result<()> {
    let reply = client.must(DB, &doc! { "listIndexes": "main" })?;
    let names: BTreeSet<String> = reply
        .get_document("cursor")?
        .get_array("firstBatch")?
        .iter()
        .filter_map(|index| index.as_document()?.get_str("name").ok().map(str::to_owned))
        .collect();
    for ledger in ledgers {
        let exists = names.contains(&ledger.index_name());
        if ledger.index.is_some_and(|known| known != exists) {
            problems.push(format!("index {}: acknowledged {:?}, found {exists}", ledger.index_name(), ledger.index));
        }
        ledger.index = Some(exists);
    }
    Ok(())
}

fn read_all(client: &mut Client, collection: &str) -> Result<Vec<Document>> {
    let mut reply = client.must(DB, &doc! { "find": collection, "batchSize": 10_000 })?;
    let mut documents = Vec::new();
    let mut batch = "firstBatch";
    loop {
        let cursor = reply.get_document("cursor")?;
        documents.extend(cursor.get_array(batch)?.iter().filter_map(Bson::as_document).cloned());
        let id = cursor.get_i64("id")?;
        if id == 0 {
            return Ok(documents);
        }
        reply = client.must(DB, &doc! { "getMore": id, "collection": collection, "batchSize": 10_000 })?;
        batch = "nextBatch";
    }
}
