//! The cursor of a find sorted by a counter: stored documents that have no increments waiting, merged with those that have.

use std::sync::Arc;

use espalier_query::Context;
use espalier_query::sort::Sort;
use espalier_store::{Cursor, Find};
use espalier_value::{RawDoc, Result};

use super::overlay::Rows;
use crate::bson::id_of;
use crate::shown::{Documents, Part, Shown};

pub struct Merge {
    /// The stored documents, and the others; both sorted.
    sources: [Source; 2],
    /// The documents that are among the others.
    rows: Arc<Rows>,
    current: Option<usize>,
    sort: Option<Arc<Sort>>,
    context: Arc<Context>,
}

struct Source {
    cursor: Box<dyn Cursor>,
    key: Vec<u8>,
    ended: bool,
}

impl Source {
    /// The next document that is not `left_out`.
    fn advance(&mut self, sort: Option<&Sort>, left_out: Option<&Rows>) -> Result<()> {
        loop {
            self.ended = self.ended || !self.cursor.advance()?;
            if self.ended {
                return Ok(());
            }
            if left_out.is_none_or(|rows| !rows.has(id_of(self.cursor.doc()))) {
                break;
            }
        }
        self.key.clear();
        match sort {
            Some(sort) => sort.key(self.cursor.doc(), &mut self.key),
            None => Ok(()),
        }
    }
}

/// The cursor that merges the two.
pub fn merge(stored: Box<dyn Cursor>, others: Box<dyn Cursor>, rows: Arc<Rows>, find: &Find) -> Shown<Merge> {
    let source = |cursor| Source { cursor, key: Vec::new(), ended: false };
    let (sort, context) = (find.sort.clone(), find.context.clone());
    let merge = Merge { sources: [source(stored), source(others)], rows, current: None, sort, context };
    let projection = find.projection.clone();
    Shown::new(merge, Part { skip: find.skip, limit: find.limit, projection, context: find.context.clone() })
}

impl Documents for Merge {
    fn next(&mut self) -> Result<bool> {
        self.context.interrupt.check()?;
        let sort = self.sort.as_deref();
        let [stored, others] = &mut self.sources;
        if self.current != Some(1) {
            stored.advance(sort, Some(&*self.rows))?;
        }
        if self.current != Some(0) {
            others.advance(sort, None)?;
        }
        self.current = match (stored.ended, others.ended) {
            (true, true) => None,
            (false, true) => Some(0),
            (true, false) => Some(1),
            (false, false) => Some(usize::from(stored.key > others.key)),
        };
        Ok(self.current.is_some())
    }

    fn document(&self) -> RawDoc<'_> {
        self.current.map_or(RawDoc::EMPTY, |at| self.sources[at].cursor.doc())
    }

    fn examined(&self) -> (u64, u64) {
        let sum = |of: fn(&dyn Cursor) -> u64| self.sources.iter().map(|source| of(&*source.cursor)).sum();
        (sum(|cursor| cursor.keys_examined()), sum(|cursor| cursor.docs_examined()))
    }

    fn plan_summary(&self) -> String {
        self.sources[0].cursor.plan_summary()
    }
}
