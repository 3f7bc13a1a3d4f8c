//! Collections with patterns: several connections write logical documents of one collection while another declares, changes
//! and drops its patterns. One file for each kind of pattern, one line in `all` and, if data can be migrated into it and back,
//! one in `migrator::DECLARED`.

mod approximate;
mod archive;
mod bucket;
mod migrator;
mod outlier;
mod parcels;
mod reference;
mod reviews;
mod shared;

use bson::{Document, doc};

use super::Work;
use crate::crash::ledger::first_id;

const DB: &str = "crash_patterned";
/// Connections that write to each collection.
const WRITERS: u64 = 3;

/// Every piece of work on collections with patterns.
pub fn all() -> Vec<Box<dyn Work>> {
    let mut all: Vec<Box<dyn Work>> = vec![Box::new(migrator::Migrator::new())];
    for writer in 0..WRITERS {
        all.push(Box::new(approximate::Views::new(writer)));
        all.push(Box::new(archive::Orders::new(writer)));
        all.push(Box::new(bucket::Readings::new(writer)));
        all.push(Box::new(outlier::Lists::new(writer)));
        all.push(Box::new(reference::Invoices::new(writer)));
        all.push(Box::new(reviews::Reviews::new(writer)));
        all.push(Box::new(shared::Items::new(writer)));
    }
    all.extend(parcels::all());
    all
}

/// The filter for the documents of one writer.
fn of_writer(writer: u64) -> Document {
    doc! { "_id": { "$gte": first_id(writer), "$lt": first_id(writer + 1) } }
}
