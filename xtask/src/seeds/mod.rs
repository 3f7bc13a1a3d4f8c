//! The application code of the texts that the patterns come from, transcribed as it stands there, on plain collections.
//!
//! `cargo xtask races` runs it concurrently to show what goes wrong, `cargo xtask bench` to have something to compare with.
//! Sizes are parameters, so that a short run meets the borders; nothing else is changed.

pub mod archive;
pub mod bucket;
pub mod outlier;
pub mod reference;
pub mod reviews;
pub mod views;

use bson::{Bson, Document, doc};

use crate::client::Client;
use crate::error::Result;

/// `findOne`.
fn find_one(client: &mut Client, db: &str, collection: &str, filter: Document) -> Result<Option<Document>> {
    let find = doc! { "find": collection, "filter": filter, "limit": 1, "singleBatch": true };
    let mut reply = client.must(db, &find)?;
    let batch = std::mem::take(reply.get_document_mut("cursor")?.get_array_mut("firstBatch")?);
    Ok(batch.into_iter().next().and_then(|first| match first {
        Bson::Document(first) => Some(first),
        _ => None,
    }))
}

/// `updateOne`.
pub fn update_one(
    client: &mut Client,
    db: &str,
    collection: &str,
    filter: Document,
    change: Document,
) -> Result<Document> {
    client.must(db, &doc! { "update": collection, "updates": [{ "q": filter, "u": change }] })
}

/// `insertOne`, `insertMany`.
pub fn insert(client: &mut Client, db: &str, collection: &str, documents: Vec<Document>) -> Result<()> {
    client.must(db, &doc! { "insert": collection, "documents": documents }).map(drop)
}

/// A number of any type, as JavaScript has it.
pub fn as_number(value: Option<&Bson>) -> i64 {
    match value {
        Some(Bson::Int32(n)) => i64::from(*n),
        Some(Bson::Int64(n)) => *n,
        Some(Bson::Double(n)) => *n as i64,
        _ => 0,
    }
}
