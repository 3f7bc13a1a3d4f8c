//! `validate`: every document readable, every index entry belonging to a document, every document with all its
//! entries, the counts right. With `repair`, wrong entries are removed, missing ones added, counts corrected.

use std::collections::BTreeSet;
use std::sync::Arc;

use espalier_kv::Batch;
use espalier_query::Context;
use espalier_store::Namespace;
use espalier_value::number::Number;
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawDoc, Result};

use crate::catalog::{Collection, Counts, Index, persist};
use crate::index::Entry;
use crate::index::entry::split;
use crate::layout::{record_at_end, record_key, tree_range};
use crate::txn::{Deltas, Txn, index_keys};
use crate::view::View;

/// Errors listed one by one; more are only counted.
const LISTED_MAX: usize = 100;

struct Report {
    errors: ArrayBuf,
    found: usize,
    fixes: Batch,
}

impl Report {
    fn error(&mut self, text: String) {
        self.found += 1;
        if self.errors.len() < LISTED_MAX {
            self.errors.push(text.as_str());
        }
    }
}

pub(crate) fn validate(txn: &mut Txn, ns: &Namespace, full: bool, repair: bool) -> Result<DocBuf> {
    let (view, catalog) = txn.captured();
    let Some(collection) = catalog.get(ns) else {
        return Err(Error::new(Code::NamespaceNotFound, format!("Collection '{ns}' does not exist to validate.")));
    };
    let (view, collection) = (view.clone(), collection.clone());
    let context = txn.context();
    let mut report = Report { errors: ArrayBuf::new(), found: 0, fixes: Batch::new() };
    let mut damaged = false;
    if full {
        let storage = txn.core().kv.verify(|_| context.interrupt.check().is_ok()).map_err(crate::error::kv)?;
        context.interrupt.check()?;
        damaged = !storage.problems.is_empty();
        storage.problems.iter().for_each(|problem| report.error(format!("storage: {problem}")));
    }
    // What cannot be read from disk cannot be compared either.
    let (records, invalid) = match damaged {
        true => (crate::stats::counts(&view, &collection)?, 0),
        false => check_records(&view, &collection, &context, &mut report)?,
    };
    let mut keys_per_index = DocBuf::new();
    let mut index_details = DocBuf::new();
    for index in &collection.indexes {
        let before = report.found;
        let keys = match damaged {
            true => 0,
            false => check_index(&view, &collection, index, &context, &mut report)?,
        };
        keys_per_index.append(&index.spec.name, Number::narrowest(keys as i64).to_value());
        let mut detail = DocBuf::new();
        detail.append("valid", !damaged && report.found == before);
        index_details.append(&index.spec.name, &detail);
    }
    let counted = crate::stats::counts(&view, &collection)?;
    if counted != records {
        report.error(format!(
            "the stored counts are {} documents, {} bytes; the documents are {} and {}",
            counted.documents, counted.bytes, records.documents, records.bytes
        ));
    }
    let mut repaired = false;
    if repair && report.found > 0 && !damaged {
        report.fixes.guard(&collection.guard_key());
        let mut counts = crate::core::lock(&collection.live.counts);
        report.fixes.put(&collection.counts_key(), &records.to_bytes());
        if txn.core().commit(&mut report.fixes, Some(&view), &Deltas::new())?.is_none() {
            return Err(Error::new(
                Code::ObjectIsBusy,
                "the collection was written while it was being repaired; run validate with repair again",
            ));
        }
        *counts = records;
        repaired = true;
    }
    let mut out = DocBuf::new();
    out.append("ns", &ns.to_string())
        .append("uuid", espalier_value::ValueRef::Binary(4, &collection.uuid))
        .append("nInvalidDocuments", Number::narrowest(invalid as i64).to_value())
        .append("nNonCompliantDocuments", 0)
        .append("nrecords", Number::narrowest(records.documents).to_value())
        .append("nIndexes", collection.indexes.len() as i32)
        .append("keysPerIndex", &keys_per_index)
        .append("indexDetails", &index_details)
        .append("valid", report.found == 0 || repaired)
        .append("repaired", repaired)
        .append("warnings", &ArrayBuf::new())
        .append("errors", &report.errors)
        .append("extraIndexEntries", &ArrayBuf::new())
        .append("missingIndexEntries", &ArrayBuf::new())
        .append("corruptRecords", &ArrayBuf::new());
    Ok(out)
}

/// Every document: readable, and with all its entries in every index.
fn check_records(
    view: &View,
    collection: &Collection,
    context: &Context,
    report: &mut Report,
) -> Result<(Counts, u64)> {
    let (low, high) = tree_range(collection.id);
    let mut scan = view.scan(&low, &high, false)?;
    let (mut counts, mut invalid) = (Counts::default(), 0);
    while scan.next()? {
        context.interrupt.check()?;
        let record = record_at_end(scan.key());
        let Ok(doc) = espalier_value::validate(scan.value()) else {
            invalid += 1;
            report.error(format!("record {record} is not a readable document"));
            continue;
        };
        counts = counts.plus(Counts { documents: 1, bytes: scan.value().len() as i64 });
        for index in collection.indexes.iter().filter(|i| !i.building) {
            let keys = index_keys(index, doc)?;
            if keys.multikey & !index.multikey() != 0 {
                report.error(format!("index {} does not know of the arrays of record {record}", index.spec.name));
                index.note_multikey(keys.multikey);
                report.fixes.put(&collection.guard_key(), persist::encode(collection).as_bytes());
            }
            for (encoded, types) in &keys.entries {
                let entry = Entry::new(index.id, &index.spec, encoded, types, record);
                let there = view.get(&entry.key)?;
                if there.as_deref() != Some(entry.value.as_slice()) {
                    report.error(format!("index {} has no right entry for record {record}", index.spec.name));
                    report.fixes.put(&entry.key, &entry.value);
                }
            }
        }
    }
    Ok((counts, invalid))
}

/// Every entry: belongs to a document that has this key.
fn check_index(
    view: &View,
    collection: &Collection,
    index: &Arc<Index>,
    context: &Context,
    report: &mut Report,
) -> Result<u64> {
    let (low, high) = tree_range(index.id);
    let mut scan = view.scan(&low, &high, false)?;
    let mut entries = 0;
    while scan.next()? {
        context.interrupt.check()?;
        entries += 1;
        let (fields, record, _) = split(index.spec.unique, scan.key(), scan.value());
        let belongs = match view.get(&record_key(collection.id, record))? {
            Some(doc) => {
                let keys = index_keys(index, RawDoc::trusted(&doc))?;
                let own: BTreeSet<&[u8]> = keys.entries.iter().map(|(k, _)| k.as_slice()).collect();
                own.contains(fields)
            }
            None => false,
        };
        if !belongs {
            report.error(format!("index {} has an entry that record {record} does not have", index.spec.name));
            report.fixes.delete(scan.key());
        }
    }
    Ok(entries)
}
