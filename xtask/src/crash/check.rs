//! What must hold of every collection, whoever writes it: it is valid, and counts what it has.

use std::time::Duration;

use bson::doc;

use super::problems::Problems;
use super::session::{code, number, read_all};
use crate::client::Client;
use crate::error::Result;

const NAMESPACE_NOT_FOUND: i32 = 26;
/// How often differing counts are looked at again.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Validates every collection of every database and compares the counts with the documents.
pub fn check(client: &mut Client, problems: &mut Problems) -> Result<()> {
    let reply = client.must("admin", &doc! { "listDatabases": 1, "nameOnly": true })?;
    let mut full = true;
    for database in reply.get_array("databases")? {
        let Some(db) = database.as_document().and_then(|database| database.get_str("name").ok()) else { continue };
        if matches!(db, "admin" | "config" | "local") {
            continue;
        }
        for info in read_all(client, db, &doc! { "listCollections": 1 })? {
            let name = info.get_str("name")?;
            if name.starts_with("tmp.") {
                problems.add(format!("{db}.{name} was left over"));
            }
            if info.get_str("type").ok() != Some("collection") || name.starts_with("system.") {
                continue;
            }
            check_collection(client, db, name, full, problems)?;
            // `full` looks at every file of the folder; once is enough.
            full = false;
        }
    }
    Ok(())
}

fn check_collection(client: &mut Client, db: &str, name: &str, full: bool, problems: &mut Problems) -> Result<()> {
    let reply = client.run(db, &doc! { "validate": name, "full": full })?;
    if code(&reply) == Some(NAMESPACE_NOT_FOUND) {
        // A migration that ends meanwhile drops what its pattern stored.
        return Ok(());
    }
    if !reply.get_bool("valid").unwrap_or(false) {
        problems.add(format!("{db}.{name} is not valid: {reply}"));
    }
    // A pattern's work in the background may move documents between the two looks.
    for tries in 0.. {
        let (stored, counted) = counts(client, db, name)?;
        if stored == Some(counted) {
            break;
        }
        if tries == TRIES {
            problems.add(format!("{db}.{name} says it has {stored:?} documents and has {counted}"));
            break;
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
    Ok(())
}

/// What a collection says of the number of its documents, and how many there are.
fn counts(client: &mut Client, db: &str, name: &str) -> Result<(Option<i64>, i64)> {
    let pipeline = vec![doc! { "$group": { "_id": null, "n": { "$sum": 1 } } }];
    let counted = client.must(db, &doc! { "aggregate": name, "pipeline": pipeline, "cursor": {} })?;
    let counted = counted.get_document("cursor")?.get_array("firstBatch")?;
    let counted = counted.first().and_then(|group| number(group.as_document()?, "n")).unwrap_or(0);
    let stats = client.must(db, &doc! { "collStats": name })?;
    Ok((number(&stats, "count"), counted))
}
