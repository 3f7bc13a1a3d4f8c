//! The cursor over both collections: the archive behind the active documents, or the two merged by the sort.

use std::cmp::Ordering;
use std::sync::Arc;

use espalier_query::Context;
use espalier_query::sort::Sort;
use espalier_store::{Cursor, Find, Namespace, Transaction};
use espalier_value::{RawDoc, Result};

use crate::shown::{Documents, Part, Shown};

pub struct Union {
    /// The snapshot that both are read at.
    at: Box<dyn Transaction>,
    sources: [Source; 2],
    /// The one that has the current document.
    current: Option<usize>,
    sort: Option<Arc<Sort>>,
    context: Arc<Context>,
}

/// One of the collections. Opened when it is needed: a point read that finds its document looks no further.
struct Source {
    ns: Namespace,
    find: Find,
    cursor: Option<Box<dyn Cursor>>,
    key: Vec<u8>,
    ended: bool,
}

impl Source {
    fn new(ns: Namespace, find: Find) -> Source {
        Source { ns, find, cursor: None, key: Vec::new(), ended: false }
    }

    fn advance(&mut self, at: &dyn Transaction, sort: Option<&Sort>) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            none => none.insert(at.find(&self.ns, &self.find)?),
        };
        self.ended = !cursor.advance()?;
        if let Some(sort) = sort.filter(|_| !self.ended) {
            self.key.clear();
            sort.key(cursor.doc(), &mut self.key)?;
        }
        Ok(!self.ended)
    }
}

/// `first` comes before `second`, or before what is equal there.
pub fn union(at: Box<dyn Transaction>, first: Namespace, second: Namespace, find: &Find) -> Shown<Union> {
    let most = find.limit.map(|limit| limit.saturating_add(find.skip));
    let mut each = Find { skip: 0, limit: most, ..find.clone() };
    if let Some(sort) = &find.sort {
        // The merge looks at the sort's fields, the projection comes after it.
        each.projection = None;
        if let Some(needs) = &mut each.needs {
            needs.extend(sort.fields().iter().map(|field| field.path.first().to_string()));
        }
    }
    let sources = [Source::new(first, each.clone()), Source::new(second, each)];
    let union = Union { at, sources, current: None, sort: find.sort.clone(), context: find.context.clone() };
    let projection = find.projection.clone().filter(|_| find.sort.is_some());
    Shown::new(union, Part { skip: find.skip, limit: find.limit, projection, context: find.context.clone() })
}

impl Union {
    fn opened(&self) -> impl Iterator<Item = &dyn Cursor> {
        self.sources.iter().filter_map(|source| source.cursor.as_deref())
    }
}

impl Documents for Union {
    fn next(&mut self) -> Result<bool> {
        self.context.interrupt.check()?;
        let sort = self.sort.as_deref();
        let [first, second] = &mut self.sources;
        if sort.is_none() {
            let found = if first.advance(&*self.at, None)? { Some(0) } else { None };
            self.current = match found {
                Some(at) => Some(at),
                None => second.advance(&*self.at, None)?.then_some(1),
            };
            return Ok(self.current.is_some());
        }
        match self.current {
            Some(0) => drop(first.advance(&*self.at, sort)?),
            Some(_) => drop(second.advance(&*self.at, sort)?),
            None => {
                first.advance(&*self.at, sort)?;
                second.advance(&*self.at, sort)?;
            }
        }
        self.current = match (first.ended, second.ended) {
            (true, true) => None,
            (false, true) => Some(0),
            (true, false) => Some(1),
            (false, false) => Some(usize::from(first.key.cmp(&second.key) == Ordering::Greater)),
        };
        Ok(self.current.is_some())
    }

    fn document(&self) -> RawDoc<'_> {
        let cursor = self.current.and_then(|at| self.sources[at].cursor.as_deref());
        cursor.map_or(RawDoc::EMPTY, |cursor| cursor.doc())
    }

    fn examined(&self) -> (u64, u64) {
        let sum = |of: fn(&dyn Cursor) -> u64| self.opened().map(of).sum();
        (sum(|cursor| cursor.keys_examined()), sum(|cursor| cursor.docs_examined()))
    }

    fn plan_summary(&self) -> String {
        self.opened().map(|cursor| cursor.plan_summary()).collect::<Vec<_>>().join(", ")
    }
}
