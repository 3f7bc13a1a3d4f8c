//! What must hold of every collection, whoever writes it: it is valid, and counts what it has.

use bson::doc;

use super::problems::Problems;
use super::session::{number, read_all};
use crate::client::Client;
use crate::error::Result;

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
    let reply = client.must(db, &doc! { "validate": name, "full": full })?;
    if !reply.get_bool("valid").unwrap_or(false) {
        problems.add(format!("{db}.{name} is not valid: {reply}"));
    }
    let pipeline = vec![doc! { "$group": { "_id": null, "n": { "$sum": 1 } } }];
    let counted = client.must(db, &doc! { "aggregate": name, "pipeline": pipeline, "cursor": {} })?;
    let counted = counted.get_document("cursor")?.get_array("firstBatch")?;
    let counted = counted.first().and_then(|group| number(group.as_document()?, "n")).unwrap_or(0);
    let stats = client.must(db, &doc! { "collStats": name })?;
    let stored = number(&stats, "count");
    if stored != Some(counted) {
        problems.add(format!("{db}.{name} says it has {stored:?} documents and has {counted}"));
    }
    Ok(())
}
