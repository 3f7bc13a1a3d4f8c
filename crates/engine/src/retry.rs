//! The tree of remembered statements: `[session][statement id]` to `[transaction number][what came of it]`. A session's
//! next write of the same statement id takes the place of the last.

use espalier_store::retry::{Remembered, RememberedSession, SessionId, Statement, Statements};
use espalier_store::{Deleted, Updated};
use espalier_value::number::Number;
use espalier_value::{DocBuf, Error, RawDoc, Result, Value, ValueRef};

use crate::core::Core;
use crate::error::kv;
use crate::layout::{self, TREE_BYTES};
use crate::view::View;

const SESSION_BYTES: usize = 16;
const KEY_BYTES: usize = TREE_BYTES + SESSION_BYTES + 4;
/// The place of a commit, after all statements.
const COMMIT: u32 = u32::MAX;
/// Records removed in one commit.
const FORGET_STEP: usize = 1_000;

fn key(session: &SessionId, place: u32) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..TREE_BYTES].copy_from_slice(&layout::RETRY.to_be_bytes());
    key[TREE_BYTES..TREE_BYTES + SESSION_BYTES].copy_from_slice(session);
    key[TREE_BYTES + SESSION_BYTES..].copy_from_slice(&place.to_be_bytes());
    key
}

/// Statement ids are never negative; the sign would spoil the order.
fn place(id: i32) -> u32 {
    id.max(0) as u32
}

/// A record ready to be stored.
pub type Record = ([u8; KEY_BYTES], Vec<u8>);

fn record(session: &SessionId, place: u32, txn_number: i64, doc: &DocBuf) -> Record {
    let mut value = txn_number.to_be_bytes().to_vec();
    value.extend_from_slice(doc.as_bytes());
    (key(session, place), value)
}

/// The record of anything that can be remembered; `None` if there is nothing to it.
pub fn record_of(session: &SessionId, txn_number: i64, what: &Remembered) -> Option<Record> {
    let statement = |id: i32| Statement { session: *session, txn_number, id };
    match what {
        Remembered::Inserted(ids) => inserted(&Statements { session: *session, txn_number, ids: Vec::new() }, ids),
        Remembered::Updated(id, done) => Some(updated(&statement(*id), done)),
        Remembered::Deleted(id, done) => Some(deleted(&statement(*id), done)),
        Remembered::Committed => Some(committed(session, txn_number)),
    }
}

pub fn updated(statement: &Statement, updated: &Updated) -> Record {
    let mut doc = DocBuf::new();
    doc.append("u", updated.matched as i64).append("m", updated.modified as i64);
    if let Some(id) = &updated.upserted_id {
        doc.append("id", id.or_null());
    }
    if let Some(image) = &updated.image {
        doc.append("image", image);
    }
    record(&statement.session, place(statement.id), statement.txn_number, &doc)
}

pub fn deleted(statement: &Statement, deleted: &Deleted) -> Record {
    let mut doc = DocBuf::new();
    doc.append("d", deleted.deleted as i64);
    if let Some(image) = &deleted.image {
        doc.append("image", image);
    }
    record(&statement.session, place(statement.id), statement.txn_number, &doc)
}

/// The documents of one commit, as runs of statement ids; `None` if there are none.
pub fn inserted(statements: &Statements, done: &[i32]) -> Option<Record> {
    let first = *done.first()?;
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for id in done {
        match runs.last_mut() {
            Some((start, len)) if i64::from(*start) + i64::from(*len) == i64::from(*id) => *len += 1,
            _ => runs.push((*id, 1)),
        }
    }
    let mut doc = DocBuf::new();
    doc.append_array("i", |array| {
        for (start, len) in runs {
            array.push(start);
            array.push(len);
        }
    });
    Some(record(&statements.session, place(first), statements.txn_number, &doc))
}

pub fn committed(session: &SessionId, txn_number: i64) -> Record {
    record(session, COMMIT, txn_number, &DocBuf::new())
}

/// What is remembered of a session's writes with this number.
pub fn remembered(core: &Core, session: &SessionId, txn_number: i64) -> Result<Vec<Remembered>> {
    let view = View::new(core.kv.snapshot());
    let mut found = Vec::new();
    let mut scan = view.scan(&key(session, 0), &end(session), false)?;
    while scan.next()? {
        let (number, doc) = split(scan.value())?;
        if number == txn_number {
            found.push(decode(place_of(scan.key()), doc)?);
        }
    }
    Ok(found)
}

/// Past every record of a session.
fn end(session: &SessionId) -> Vec<u8> {
    let mut end = key(session, COMMIT).to_vec();
    end.push(0);
    end
}

fn place_of(key: &[u8]) -> u32 {
    key.last_chunk::<4>().map_or(0, |b| u32::from_be_bytes(*b))
}

fn damaged() -> Error {
    Error::internal("a remembered statement is damaged")
}

fn split(value: &[u8]) -> Result<(i64, RawDoc<'_>)> {
    let (number, doc) = value.split_first_chunk::<8>().ok_or_else(damaged)?;
    Ok((i64::from_be_bytes(*number), RawDoc::trusted(doc)))
}

fn decode(place: u32, doc: RawDoc<'_>) -> Result<Remembered> {
    if place == COMMIT {
        return Ok(Remembered::Committed);
    }
    let count = |name: &str| match doc.get(name) {
        Some(ValueRef::Int64(n)) => Some(n.max(0) as u64),
        _ => None,
    };
    let image = doc.get_doc("image").map(DocBuf::from_raw);
    let id = i32::try_from(place).map_err(|_| damaged())?;
    if let Some(matched) = count("u") {
        let upserted_id = doc.get("id").map(Value::own);
        let modified = count("m").ok_or_else(damaged)?;
        return Ok(Remembered::Updated(id, Updated { matched, modified, upserted_id, image }));
    }
    if let Some(deleted) = count("d") {
        return Ok(Remembered::Deleted(id, Deleted { deleted, image }));
    }
    let Some(ValueRef::Array(runs)) = doc.get("i") else { return Err(damaged()) };
    let numbers: Vec<i64> = runs.iter().filter_map(Number::of).map(Number::to_i64_clamped).collect();
    let ids = numbers.chunks_exact(2).flat_map(|run| run[0]..run[0].saturating_add(run[1]));
    Ok(Remembered::Inserted(ids.filter_map(|id| i32::try_from(id).ok()).collect()))
}

/// Every session of which something is remembered.
pub fn sessions(core: &Core) -> Result<Vec<RememberedSession>> {
    let view = View::new(core.kv.snapshot());
    let (low, high) = layout::tree_range(layout::RETRY);
    let mut scan = view.scan(&low, &high, false)?;
    let mut found: Vec<RememberedSession> = Vec::new();
    while scan.next()? {
        let session = scan.key().get(TREE_BYTES..).and_then(|rest| rest.first_chunk::<SESSION_BYTES>());
        let session = *session.ok_or_else(damaged)?;
        let (txn_number, _) = split(scan.value())?;
        let committed = place_of(scan.key()) == COMMIT;
        match found.last_mut() {
            Some(last) if last.session == session => {
                if txn_number > last.txn_number {
                    *last = RememberedSession { session, txn_number, committed };
                }
            }
            _ => found.push(RememberedSession { session, txn_number, committed }),
        }
    }
    Ok(found)
}

/// Removes what is remembered of a session, from a statement on.
pub fn forget(core: &Core, session: &SessionId, from: i32) -> Result<()> {
    let view = View::new(core.kv.snapshot());
    let mut scan = view.scan(&key(session, place(from)), &end(session), false)?;
    loop {
        let mut batch = espalier_kv::Batch::new();
        while batch.len() < FORGET_STEP && scan.next()? {
            batch.delete(scan.key());
        }
        if batch.is_empty() {
            return Ok(());
        }
        core.kv.commit(&batch, None).map_err(|error| match error {
            espalier_kv::CommitError::Kv(error) => kv(error),
            espalier_kv::CommitError::Conflict { .. } => crate::error::write_conflict(),
        })?;
    }
}
