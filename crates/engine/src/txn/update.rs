//! Updating: find, lock, look again, write.

use std::sync::Arc;

use espalier_query::Stream;
use espalier_query::update::Apply;
use espalier_store::{Find, Namespace, Update, Updated, Want};
use espalier_value::{Code, DocBuf, RawDoc, Result, Value};

use super::write::{check_size, check_valid, id_of};
use super::{Txn, ddl, read};
use crate::catalog::Collection;
use crate::layout::RecordId;

pub fn update(txn: &mut Txn, ns: &Namespace, update: &Update) -> Result<Updated> {
    if update.multi {
        return update_many(txn, ns, update);
    }
    loop {
        update.context.interrupt.check()?;
        let outcome = match txn.existing(ns) {
            Some(collection) => update_one(txn, &collection, update)?,
            None => One::NoMatch,
        };
        match outcome {
            One::Done(updated) => return Ok(updated),
            One::NoMatch if update.upsert => {
                if let Some(updated) = upsert(txn, ns, update)? {
                    return Ok(updated);
                }
            }
            One::NoMatch => return Ok(Updated::default()),
            One::Again => {}
        }
        txn.refresh();
    }
}

enum One {
    Done(Updated),
    NoMatch,
    /// Somebody else changed what was found.
    Again,
}

/// What became of one record.
enum Written {
    Done {
        modified: bool,
        image: Option<DocBuf>,
    },
    /// It is gone or no longer matches.
    Lost,
    Conflict,
}

fn update_one(txn: &mut Txn, collection: &Arc<Collection>, update: &Update) -> Result<One> {
    let mut cursor = read::open(txn, collection, &targets(update, Some(1)))?;
    if !cursor.advance()? {
        return Ok(One::NoMatch);
    }
    let (record, found) = (cursor.record(), DocBuf::from_raw(cursor.doc()));
    drop(cursor);
    Ok(match write_one(txn, collection, record, &found, update)? {
        Written::Done { modified, image } => {
            One::Done(Updated { matched: 1, modified: modified.into(), upserted_id: None, image })
        }
        Written::Lost | Written::Conflict => One::Again,
    })
}

fn update_many(txn: &mut Txn, ns: &Namespace, update: &Update) -> Result<Updated> {
    let mut total = Updated::default();
    if let Some(collection) = txn.existing(ns) {
        // The cursor keeps the snapshot it began with, so a document that an update moves is not met again.
        let mut cursor = read::open(txn, &collection, &targets(update, None))?;
        while cursor.advance()? {
            let (record, found) = (cursor.record(), DocBuf::from_raw(cursor.doc()));
            loop {
                update.context.interrupt.check()?;
                match write_one(txn, &collection, record, &found, update)? {
                    Written::Done { modified, .. } => {
                        total.matched += 1;
                        total.modified += u64::from(modified);
                    }
                    Written::Lost => {}
                    Written::Conflict => {
                        txn.refresh();
                        continue;
                    }
                }
                break;
            }
        }
    }
    if total.matched > 0 || !update.upsert {
        return Ok(total);
    }
    loop {
        if let Some(updated) = upsert(txn, ns, update)? {
            return Ok(updated);
        }
        // Somebody else inserted a match meanwhile.
        txn.refresh();
        if let Some(collection) = txn.existing(ns)
            && let One::Done(updated) = update_one(txn, &collection, update)?
        {
            return Ok(updated);
        }
    }
}

/// The find that leads to the documents to update.
fn targets(update: &Update, limit: Option<u64>) -> Find {
    Find {
        sort: update.sort.clone(),
        hint: update.hint.clone(),
        limit,
        ..Find::new(update.filter.clone(), update.context.clone())
    }
}

fn write_one(
    txn: &mut Txn,
    collection: &Arc<Collection>,
    record: RecordId,
    found: &DocBuf,
    update: &Update,
) -> Result<Written> {
    let core = txn.core.clone();
    let auto = txn.is_auto();
    let _lock = auto.then(|| core.locks.lock(collection.id, record));
    let mut current = None;
    if auto {
        // Behind the lock nobody else writes this document: what is read now is what will be replaced.
        txn.refresh();
        match txn.existing(&collection.ns) {
            Some(now) if now.id == collection.id => {}
            _ => return Ok(Written::Lost),
        }
        match txn.view.get(&collection.record_key(record))? {
            None => return Ok(Written::Lost),
            Some(now) if *now == *found.as_bytes() => {}
            Some(now) => current = Some(DocBuf::from_raw(RawDoc::trusted(&now))),
        }
    }
    let collection = match txn.existing(&collection.ns) {
        Some(now) => now,
        None => return Ok(Written::Lost),
    };
    let changed = current.is_some();
    let before = current.as_ref().unwrap_or(found).as_raw();
    let mut position = None;
    if changed || update.update.needs_position() {
        match update.filter.matches_at(before, &update.context)? {
            Some(found) => position = found.position,
            None => return Ok(Written::Lost),
        }
    }
    let apply = Apply { context: &update.context, position, inserting: false };
    let after = update.update.apply(before, &apply)?;
    let image = |doc: RawDoc<'_>| image_of(update, doc);
    let Some(after) = after else {
        let image = if update.want == Want::Nothing { None } else { Some(image(before)?) };
        return Ok(Written::Done { modified: false, image });
    };
    check_size(after.as_raw(), core.options.document_bytes_max, Code(17419))?;
    if !update.bypass_validation {
        check_valid(&collection, after.as_raw(), Some(before), &update.context)?;
    }
    let mut writes = txn.take_writes();
    let written = writes.update(&txn.view, &collection, record, before, after.as_raw());
    if !auto {
        txn.keep_writes(writes);
        written?;
    } else {
        written?;
        if !txn.commit_auto(writes)? {
            return Ok(Written::Conflict);
        }
    }
    let image = match update.want {
        Want::Nothing => None,
        Want::Before => Some(image(before)?),
        Want::After => Some(image(after.as_raw())?),
    };
    Ok(Written::Done { modified: true, image })
}

fn image_of(update: &Update, doc: RawDoc<'_>) -> Result<DocBuf> {
    let Some(projection) = &update.projection else { return Ok(DocBuf::from_raw(doc)) };
    let mut out = DocBuf::new();
    let position = match projection.needs_position() {
        true => update.filter.matches_at(doc, &update.context)?.and_then(|m| m.position),
        false => None,
    };
    projection.apply(doc, position, &update.context, &mut out)?;
    Ok(out)
}

/// Inserts the document that filter and update make. `None` if somebody else was faster and it must be looked for
/// again.
fn upsert(txn: &mut Txn, ns: &Namespace, update: &Update) -> Result<Option<Updated>> {
    let equalities = update.filter.equalities()?;
    let doc = update.update.upsert(&equalities, update.new_id, &update.context)?;
    let collection = ddl::get_or_create(txn, ns)?;
    check_size(doc.as_raw(), txn.core.options.document_bytes_max, Code(17419))?;
    if !update.bypass_validation {
        check_valid(&collection, doc.as_raw(), None, &update.context)?;
    }
    let auto = txn.is_auto();
    let mut writes = txn.take_writes();
    let written = writes.insert(&txn.view, &collection, collection.live.take_record(), doc.as_raw());
    let mut stored = true;
    if auto {
        match written {
            Err(error) if error.code() == Code::DuplicateKey && appeared(txn, &collection.ns, update)? => {
                return Ok(None);
            }
            written => written?,
        }
        stored = txn.commit_auto(writes)?;
    } else {
        txn.keep_writes(writes);
        written?;
    }
    if !stored {
        return Ok(None);
    }
    let image = if update.want == Want::After { Some(image_of(update, doc.as_raw())?) } else { None };
    let upserted_id = Some(Value::own(id_of(doc.as_raw())));
    Ok(Some(Updated { matched: 0, modified: 0, upserted_id, image }))
}

/// After a duplicate key in an upsert: true if a match has appeared meanwhile, so that trying again helps.
fn appeared(txn: &mut Txn, ns: &Namespace, update: &Update) -> Result<bool> {
    txn.refresh();
    match txn.existing(ns) {
        Some(collection) => read::open(txn, &collection, &targets(update, Some(1)))?.advance(),
        None => Ok(true),
    }
}
