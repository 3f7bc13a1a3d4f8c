//! What is left to be done to documents of a collection after the commit that made it necessary: a mark per key, made in
//! that commit, and taken away in the one that finds everything done.

use espalier_store::{Namespace, Transaction, Update};
use espalier_value::{DocBuf, RawDoc, Result, ValueRef, doc};

use super::Key;
use super::gate::place;
use crate::bson::whole;
use crate::stored;

/// One thing that is left to be done.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// The collection whose documents are concerned.
    pub of: Box<str>,
    pub pattern: Box<str>,
    pub key: Key,
    id: DocBuf,
    /// How often it was asked for: a mark that was made again meanwhile stays.
    times: i64,
}

fn id(ns: &Namespace, pattern: &str, key: &Key) -> DocBuf {
    let mut id = DocBuf::new();
    id.append("of", ns.collection()).append("pattern", pattern).append("key", &key.to_array());
    id
}

/// Marks the documents with a key.
pub fn put(tx: &mut dyn Transaction, ns: &Namespace, pattern: &str, key: &Key, now_ms: i64) -> Result<()> {
    let mut spec = doc! { "$inc": &doc! { "times": 1 } };
    spec.append("$setOnInsert", &doc! { "since": ValueRef::DateTime(now_ms) });
    let id = id(ns, pattern, key);
    let update = stored::own_update(stored::by_id(ValueRef::Document(id.as_raw()))?, &spec)?;
    tx.update(&place(ns), &Update { upsert: true, ..update }).map(drop)
}

pub fn is_marked(at: &dyn Transaction, ns: &Namespace, pattern: &str, key: &Key) -> Result<bool> {
    Ok(stored::get(at, &place(ns), ValueRef::Document(id(ns, pattern, key).as_raw()))?.is_some())
}

/// How many keys are marked.
pub fn count(at: &dyn Transaction, ns: &Namespace, pattern: &str) -> Result<u64> {
    let mut condition = DocBuf::new();
    stored::equal(&mut condition, "_id.of", ValueRef::String(ns.collection()));
    stored::equal(&mut condition, "_id.pattern", ValueRef::String(pattern));
    at.count(&place(ns), &stored::query(stored::filter(&condition)?))
}

/// The next few things to do in a database.
pub fn list(at: &dyn Transaction, db: &str, most: u64) -> Result<Vec<Mark>> {
    let mut condition = DocBuf::new();
    condition.append("times", &doc! { "$exists": true });
    let mut find = stored::query(stored::filter(&condition)?);
    find.limit = Some(most);
    let mut cursor = at.find(&place(&Namespace::new(db, "")), &find)?;
    let mut out = Vec::new();
    while cursor.advance()? {
        out.extend(read(cursor.doc()));
    }
    Ok(out)
}

fn read(doc: RawDoc<'_>) -> Option<Mark> {
    let id = doc.get_doc("_id")?;
    let Some(ValueRef::Array(key)) = id.get("key") else { return None };
    Some(Mark {
        of: id.get_str("of")?.into(),
        pattern: id.get_str("pattern")?.into(),
        key: Key::new(key.iter()),
        id: DocBuf::from_raw(id),
        times: whole(doc.get("times"))?,
    })
}

impl Mark {
    /// Takes it away, unless it was made again.
    pub fn remove(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<bool> {
        let mut condition = DocBuf::new();
        stored::equal(&mut condition, "_id", ValueRef::Document(self.id.as_raw()));
        stored::equal(&mut condition, "times", ValueRef::Int64(self.times));
        Ok(stored::delete(tx, &place(ns), stored::filter(&condition)?, false)? > 0)
    }
}
