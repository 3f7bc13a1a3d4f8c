//! Laying increments over stored documents, at the snapshot that a find began with.

use std::collections::HashMap;
use std::sync::Arc;

use espalier_store::{Namespace, Transaction};
use espalier_value::{ArrayBuf, DocBuf, RawDoc, Result, Value, ValueRef, key};

use super::Approximate;
use super::counters::overlaid;
use super::row::TO;
use crate::bson::id_of;
use crate::cursor::Assemble;
use crate::stored::{everything, get};

/// Pending documents that are kept in memory for one find; of more, each is looked up.
const ROWS_MAX: usize = 10_000;
/// Documents of a find for which one is looked up before all are read.
const LOOKED_UP: u64 = 8;

/// The pending documents of a snapshot, by the keys of their `_id`s.
#[derive(Default)]
pub struct Rows(HashMap<Vec<u8>, (Value<'static>, DocBuf)>);

impl Rows {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, id: ValueRef<'_>) -> bool {
        self.0.contains_key(&key::of(id))
    }

    fn to(&self, id: ValueRef<'_>) -> Option<RawDoc<'_>> {
        self.0.get(&key::of(id)).map(|(_, to)| to.as_raw())
    }

    pub fn ids(&self) -> ArrayBuf {
        let mut ids = ArrayBuf::new();
        self.0.values().for_each(|(id, _)| {
            ids.push_value(id);
        });
        ids
    }
}

impl Approximate {
    /// All pending documents; `None` if they are too many to be kept.
    pub(super) fn rows(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Option<Arc<Rows>>> {
        read(at, &self.pending(ns))
    }
}

fn read(at: &dyn Transaction, pending: &Namespace) -> Result<Option<Arc<Rows>>> {
    let mut rows = Rows::default();
    let mut cursor = at.find(pending, &everything())?;
    while cursor.advance()? {
        let doc = cursor.doc();
        if let Some(to) = doc.get_doc(TO) {
            rows.0.insert(key::of(id_of(doc)), (Value::own(id_of(doc)), DocBuf::from_raw(to)));
        }
        if rows.len() > ROWS_MAX {
            return Ok(None);
        }
    }
    Ok(Some(Arc::new(rows)))
}

/// Lays the increments over the documents of one find.
pub struct Overlay {
    at: Box<dyn Transaction>,
    pending: Namespace,
    rows: Option<Arc<Rows>>,
    /// Not all of them can be kept.
    too_many: bool,
    looked_up: u64,
}

impl Overlay {
    pub fn new(at: Box<dyn Transaction>, pending: Namespace, rows: Option<Arc<Rows>>) -> Overlay {
        Overlay { at, pending, rows, too_many: false, looked_up: 0 }
    }
}

impl Assemble for Overlay {
    fn assemble(&mut self, stored: RawDoc<'_>) -> Result<Option<DocBuf>> {
        if self.rows.is_none() && !self.too_many && self.looked_up >= LOOKED_UP {
            self.rows = read(&*self.at, &self.pending)?;
            self.too_many = self.rows.is_none();
        }
        if let Some(rows) = &self.rows {
            return Ok(rows.to(id_of(stored)).map(|to| overlaid(stored, to)));
        }
        self.looked_up += 1;
        let row = get(&*self.at, &self.pending, id_of(stored))?;
        Ok(row.and_then(|row| row.as_raw().get_doc(TO).map(|to| overlaid(stored, to))))
    }

    fn examined(&self) -> (u64, u64) {
        let read = self.looked_up + self.rows.as_ref().map_or(0, |rows| rows.len() as u64);
        (read, read)
    }
}
