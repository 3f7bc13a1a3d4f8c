//! Updating: find, lock, look again, write.

use std::sync::Arc;

use espalier_query::Stream;
use espalier_query::update::{Apply, Description};
use espalier_store::{Namespace, Update, Updated, Want};
use espalier_value::{Code, DocBuf, Error, Result, Value};

use super::checks::{check_size, check_valid};
use super::keys::id_of;
use super::target::Wanted;
use super::untouched::Untouched;
use super::{Txn, ddl, read};
use crate::catalog::Collection;
use crate::core::EngineOptions;
use crate::exec::FindCursor;
use crate::layout::RecordId;
use crate::retry;

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
        txn.again_from_the_start(ns)?;
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
    let mut cursor = read::open(txn, collection, &wanted(update).find(Some(1)))?;
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
        if !txn.is_auto() && update.statement.is_none() && update.want == Want::Nothing {
            update_all(txn, &collection, update, &mut total)?;
        } else {
            update_each(txn, &collection, update, &mut total)?;
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
        txn.again();
        if let Some(collection) = txn.existing(ns)
            && let One::Done(updated) = update_one(txn, &collection, update)?
        {
            return Ok(updated);
        }
    }
}

/// Every document by itself.
fn update_each(txn: &mut Txn, collection: &Arc<Collection>, update: &Update, total: &mut Updated) -> Result<()> {
    // The cursor keeps the snapshot it began with, so a document that an update moves is not met again.
    let mut cursor = read::open(txn, collection, &wanted(update).find(None))?;
    while cursor.advance()? {
        let (record, found) = (cursor.record(), DocBuf::from_raw(cursor.doc()));
        loop {
            update.context.interrupt.check()?;
            match write_one(txn, collection, record, &found, update)? {
                Written::Done { modified, .. } => {
                    total.matched += 1;
                    total.modified += u64::from(modified);
                }
                Written::Lost => {}
                Written::Conflict => {
                    txn.again();
                    continue;
                }
            }
            break;
        }
    }
    Ok(())
}

/// In a transaction, all documents at once: it sees nobody else's commits, so none has to be looked at again, and each goes
/// from the cursor into the batch.
fn update_all(txn: &mut Txn, collection: &Arc<Collection>, update: &Update, total: &mut Updated) -> Result<()> {
    let mut cursor = read::open(txn, collection, &wanted(update).find(None))?;
    let untouched = Untouched::of(collection, &update.update);
    let mut writes = txn.take_writes();
    let done = loop {
        let (after, what) = match apply_next(&txn.core.options, collection, &mut cursor, update) {
            Ok(None) => break Ok(()),
            Ok(Some(applied)) => {
                total.matched += 1;
                let Some(changed) = applied else { continue };
                changed
            }
            Err(error) => break Err(error),
        };
        // What goes wrong from here on takes the whole transaction with it, as with one document.
        let (record, at) = (cursor.record(), txn.snapshot());
        writes.claim(&at, collection, record)?;
        writes.update(&at, collection, record, cursor.doc(), after.as_raw(), &what, untouched)?;
        total.modified += 1;
        if writes.len_bytes() > txn.core.options.transaction_bytes_max {
            // Which is refused when they are kept.
            break Ok(());
        }
    };
    let kept = txn.keep_writes(writes);
    done.and(kept)
}

/// What the update makes of the next document that it applies to: nothing, if it is that already; `None` after the last.
fn apply_next(
    options: &EngineOptions,
    collection: &Collection,
    cursor: &mut FindCursor,
    update: &Update,
) -> Result<Option<Option<(DocBuf, Description)>>> {
    loop {
        update.context.interrupt.check()?;
        if !cursor.advance()? {
            return Ok(None);
        }
        let before = cursor.doc();
        let mut position = None;
        if update.update.needs_position() {
            match update.filter.matches_at(before, &update.context)? {
                Some(matched) => position = matched.position,
                None => continue,
            }
        }
        let apply = Apply { context: &update.context, position, inserting: false };
        let Some((after, what)) = update.update.apply_described(before, &apply)? else { return Ok(Some(None)) };
        check_size(after.as_raw(), options, Code(17419))?;
        if !update.bypass_validation {
            check_valid(collection, after.as_raw(), Some(before), &update.context)?;
        }
        return Ok(Some(Some((after, what))));
    }
}

fn wanted(update: &Update) -> Wanted<'_> {
    Wanted {
        filter: &update.filter,
        context: &update.context,
        sort: &update.sort,
        hint: &update.hint,
        projection: &update.projection,
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
    let _lock = txn.lock(&core, collection, record)?;
    let wanted = wanted(update);
    let needs_position = update.update.needs_position();
    let Some(target) = wanted.look_again(txn, collection, record, found, needs_position)? else {
        return Ok(Written::Lost);
    };
    let before = target.doc.as_raw();
    let apply = Apply { context: &update.context, position: target.position, inserting: false };
    let (after, what) = update.update.apply_described(before, &apply)?.unzip();
    // Before anything is written: what goes wrong here must leave no trace.
    let image = match update.want {
        Want::Nothing => None,
        Want::Before => Some(wanted.image(before)?),
        Want::After => Some(wanted.image(after.as_ref().map_or(before, DocBuf::as_raw))?),
    };
    let Some((after, what)) = after.zip(what) else {
        return Ok(Written::Done { modified: false, image });
    };
    check_size(after.as_raw(), &core.options, Code(17419))?;
    if !update.bypass_validation {
        check_valid(&target.collection, after.as_raw(), Some(before), &update.context)?;
    }
    let mut writes = txn.take_writes();
    writes.claim(&txn.snapshot(), &target.collection, record)?;
    let untouched = Untouched::of(&target.collection, &update.update);
    let written = writes.update(&txn.snapshot(), &target.collection, record, before, after.as_raw(), &what, untouched);
    if let Some(statement) = &update.statement {
        let done = Updated { matched: 1, modified: 1, upserted_id: None, image: image.clone() };
        writes.remember(&retry::updated(statement, &done));
    }
    match txn.settle(writes, written)? {
        true => Ok(Written::Done { modified: true, image }),
        false => Ok(Written::Conflict),
    }
}

/// Inserts the document that filter and update make. `None` if somebody else was faster and it must be looked for
/// again.
fn upsert(txn: &mut Txn, ns: &Namespace, update: &Update) -> Result<Option<Updated>> {
    let equalities = update.filter.equalities()?;
    let bytes_max = txn.core.options.document_bytes_max;
    let made = update.update.upsert(&equalities, update.new_id, &update.context);
    let doc = made.map_err(|error| match error.code() {
        // It was not there before, so it has not grown.
        Code(17419) => Error::new(Code(17420), format!("Document to upsert is larger than {bytes_max}")),
        _ => error,
    })?;
    let collection = ddl::get_or_create(txn, ns)?;
    check_size(doc.as_raw(), &txn.core.options, Code(17420))?;
    if !update.bypass_validation {
        check_valid(&collection, doc.as_raw(), None, &update.context)?;
    }
    let auto = txn.is_auto();
    let mut writes = txn.take_writes();
    let written = writes.insert(&txn.snapshot(), &collection, doc.as_raw());
    let image = if update.want == Want::After { Some(wanted(update).image(doc.as_raw())?) } else { None };
    let upserted_id = Some(Value::own(id_of(doc.as_raw())));
    let updated = Updated { matched: 0, modified: 0, upserted_id, image };
    if let Some(statement) = &update.statement {
        writes.remember(&retry::updated(statement, &updated));
    }
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
        txn.keep_writes(writes)?;
        written?;
    }
    Ok(stored.then_some(updated))
}

/// After a duplicate key in an upsert: true if a match has appeared meanwhile, so that trying again helps.
fn appeared(txn: &mut Txn, ns: &Namespace, update: &Update) -> Result<bool> {
    txn.refresh();
    match txn.existing(ns) {
        Some(collection) => read::open(txn, &collection, &wanted(update).find(Some(1)))?.advance(),
        None => Ok(true),
    }
}
