//! Readings sorted by time, one window after the other: only those of one window are held, so a limit stops early.

use std::sync::Arc;

use espalier_query::sort::Sort;
use espalier_query::{Context, Filter, Stream};
use espalier_store::Cursor;
use espalier_value::{DocBuf, RawDoc, Result, ValueRef, key};

use super::find::Readings;
use crate::bson::value_at;

pub struct Windows {
    readings: Readings,
    sort: Arc<Sort>,
    filter: Option<Arc<Filter>>,
    context: Arc<Context>,
    /// The readings of one window that match, the next to be given last.
    window: Vec<(Vec<u8>, DocBuf)>,
    current: Option<DocBuf>,
    /// The reading that the next window begins with is in the cursor already.
    pending: bool,
    ended: bool,
}

impl Windows {
    pub fn new(readings: Readings, sort: Arc<Sort>, filter: Option<Arc<Filter>>, context: Arc<Context>) -> Windows {
        Windows { readings, sort, filter, context, window: Vec::new(), current: None, pending: false, ended: false }
    }

    /// Group and window of the bucket that the cursor stands on.
    fn place(&self) -> Vec<u8> {
        let (stored, bucket) = (self.readings.stored(), self.readings.bucket());
        let mut out = Vec::new();
        for path in &bucket.by {
            key::encode(&mut out, value_at(stored, path.parts()).unwrap_or(ValueRef::Null));
        }
        if let Some(time) = &bucket.time {
            key::encode(&mut out, stored.get(&time.start).unwrap_or(ValueRef::Null));
        }
        out
    }

    /// Gathers and sorts the next window; false at the end.
    fn gather(&mut self) -> Result<bool> {
        if !self.pending && !self.readings.advance()? {
            self.ended = true;
            return Ok(false);
        }
        let (place, mut opened) = (self.place(), self.readings.opened());
        loop {
            self.context.interrupt.check()?;
            let matches = match &self.filter {
                Some(filter) => filter.matches(self.readings.doc(), &self.context)?,
                None => true,
            };
            if matches {
                let mut key = Vec::new();
                self.sort.key(self.readings.doc(), &mut key)?;
                self.window.push((key, DocBuf::from_raw(self.readings.doc())));
            }
            if !self.readings.advance()? {
                self.ended = true;
                break;
            }
            if self.readings.opened() != opened {
                opened = self.readings.opened();
                if self.place() != place {
                    self.pending = true;
                    break;
                }
            }
        }
        self.window.sort_by(|a, b| b.0.cmp(&a.0));
        Ok(true)
    }
}

impl Stream for Windows {
    fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some((_, next)) = self.window.pop() {
                self.current = Some(next);
                return Ok(true);
            }
            if self.ended || !self.gather()? {
                self.current = None;
                return Ok(false);
            }
        }
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_ref().map_or(RawDoc::EMPTY, DocBuf::as_raw)
    }
}

impl Cursor for Windows {
    fn keys_examined(&self) -> u64 {
        self.readings.keys_examined()
    }

    fn docs_examined(&self) -> u64 {
        self.readings.docs_examined()
    }

    fn plan_summary(&self) -> String {
        self.readings.plan_summary()
    }
}
