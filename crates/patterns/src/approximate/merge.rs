//! The cursor of a find sorted by a counter: stored documents that have no increments waiting, merged with those that have.

use std::sync::Arc;

use espalier_query::projection::Projection;
use espalier_query::sort::Sort;
use espalier_query::{Context, Stream};
use espalier_store::{Cursor, Find};
use espalier_value::{DocBuf, RawDoc, Result};

use super::overlay::Rows;
use crate::bson::id_of;

pub struct Merge {
    /// The stored documents, and the others; both sorted.
    sources: [Source; 2],
    /// The documents that are among the others.
    rows: Arc<Rows>,
    current: Option<usize>,
    sort: Option<Arc<Sort>>,
    skip: u64,
    limit: Option<u64>,
    projection: Option<Arc<Projection>>,
    context: Arc<Context>,
    projected: Option<DocBuf>,
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

impl Merge {
    pub fn new(stored: Box<dyn Cursor>, others: Box<dyn Cursor>, rows: Arc<Rows>, find: &Find) -> Merge {
        let source = |cursor| Source { cursor, key: Vec::new(), ended: false };
        Merge {
            sources: [source(stored), source(others)],
            rows,
            current: None,
            sort: find.sort.clone(),
            skip: find.skip,
            limit: find.limit,
            projection: find.projection.clone(),
            context: find.context.clone(),
            projected: None,
        }
    }

    fn step(&mut self) -> Result<bool> {
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

    fn logical(&self) -> RawDoc<'_> {
        self.current.map_or(RawDoc::EMPTY, |at| self.sources[at].cursor.doc())
    }
}

impl Stream for Merge {
    fn advance(&mut self) -> Result<bool> {
        if self.limit == Some(0) || self.sources.iter().all(|source| source.ended) {
            return Ok(false);
        }
        while self.step()? {
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            if let Some(limit) = &mut self.limit {
                *limit -= 1;
            }
            if let Some(projection) = self.projection.clone() {
                let mut out = self.projected.take().unwrap_or_default();
                projection.apply(self.logical(), None, &self.context, &mut out)?;
                self.projected = Some(out);
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        match &self.projected {
            Some(projected) => projected.as_raw(),
            None => self.logical(),
        }
    }
}

impl Cursor for Merge {
    fn keys_examined(&self) -> u64 {
        self.sources.iter().map(|source| source.cursor.keys_examined()).sum()
    }

    fn docs_examined(&self) -> u64 {
        self.sources.iter().map(|source| source.cursor.docs_examined()).sum()
    }

    fn plan_summary(&self) -> String {
        self.sources[0].cursor.plan_summary()
    }
}
