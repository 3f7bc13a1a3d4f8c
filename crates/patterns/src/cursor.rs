//! The cursor of a find on logical documents: stored documents in, put together, filtered, sorted, cut and projected.

use std::sync::Arc;

use espalier_query::projection::Projection;
use espalier_query::sort::Sort;
use espalier_query::stage::Run;
use espalier_query::stage::sorter::{Sorted, Sorter};
use espalier_query::{Context, Filter, Stream};
use espalier_store::{Cursor, Find};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

/// Makes the logical document of a stored one.
pub trait Assemble: Send {
    /// `None` if the stored document is the logical one.
    fn assemble(&mut self, stored: RawDoc<'_>) -> Result<Option<DocBuf>>;
    /// Keys and documents read to put documents together.
    fn examined(&self) -> (u64, u64);
}

/// Refuses what only stored documents have. `instead` says, after the pattern's name, why and how to get on.
pub fn refuse_physical(find: &Find, pattern: &str, instead: &str) -> Result<()> {
    let what = if find.return_key {
        "returnKey"
    } else if find.show_record_id {
        "showRecordId"
    } else if find.min.is_some() || find.max.is_some() {
        "min and max"
    } else if find.tailable.is_some() {
        "a tailable cursor"
    } else {
        return Ok(());
    };
    let message = format!("{what} cannot be used on a collection with the pattern '{pattern}', {instead}");
    Err(Error::new(Code::InvalidOptions, message))
}

/// What is still to be done with the logical documents, because the store below could not.
pub struct Rest {
    pub filter: Option<Arc<Filter>>,
    pub sort: Option<Arc<Sort>>,
    pub skip: u64,
    pub limit: Option<u64>,
    pub projection: Option<Arc<Projection>>,
    pub context: Arc<Context>,
    pub run: Run,
}

pub struct Logical {
    stored: Box<dyn Cursor>,
    assemble: Box<dyn Assemble>,
    rest: Rest,
    sorted: Option<Box<Sorted>>,
    /// The logical document, where it is not the stored one.
    whole: Option<DocBuf>,
    projected: Option<DocBuf>,
    ended: bool,
}

impl Logical {
    pub fn new(stored: Box<dyn Cursor>, assemble: Box<dyn Assemble>, rest: Rest) -> Logical {
        Logical { stored, assemble, rest, sorted: None, whole: None, projected: None, ended: false }
    }

    /// The next logical document that matches.
    fn next(&mut self) -> Result<bool> {
        if let Some(sorted) = &mut self.sorted {
            return sorted.advance();
        }
        while self.stored.advance()? {
            self.rest.context.interrupt.check()?;
            let before = self.assemble.examined();
            self.whole = self.assemble.assemble(self.stored.doc())?;
            let after = self.assemble.examined();
            self.rest.context.work.examined(after.0 - before.0, after.1 - before.1);
            match &self.rest.filter {
                Some(filter) if !filter.matches(self.logical(), &self.rest.context)? => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    fn logical(&self) -> RawDoc<'_> {
        match (&self.sorted, &self.whole) {
            (Some(sorted), _) => sorted.doc(),
            (None, Some(whole)) => whole.as_raw(),
            (None, None) => self.stored.doc(),
        }
    }

    fn sort(&mut self, sort: &Sort) -> Result<()> {
        let keep = self.rest.limit.map(|limit| limit.saturating_add(self.rest.skip));
        let mut sorter = Sorter::new("Sort", keep, &self.rest.run);
        let mut key = Vec::new();
        while self.next()? {
            key.clear();
            let doc = self.logical();
            sort.key(doc, &mut key)?;
            sorter.push(&key, doc)?;
        }
        self.sorted = Some(Box::new(sorter.finish()?));
        Ok(())
    }
}

impl Stream for Logical {
    fn advance(&mut self) -> Result<bool> {
        if self.ended || self.rest.limit == Some(0) {
            return Ok(false);
        }
        if let Some(sort) = self.rest.sort.take() {
            self.sort(&sort)?;
        }
        while self.next()? {
            if self.rest.skip > 0 {
                self.rest.skip -= 1;
                continue;
            }
            if let Some(limit) = &mut self.rest.limit {
                *limit -= 1;
            }
            if let Some(projection) = self.rest.projection.clone() {
                let mut out = self.projected.take().unwrap_or_default();
                projection.apply(self.logical(), None, &self.rest.context, &mut out)?;
                self.projected = Some(out);
            }
            return Ok(true);
        }
        self.ended = true;
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        match &self.projected {
            Some(projected) => projected.as_raw(),
            None => self.logical(),
        }
    }
}

impl Cursor for Logical {
    fn keys_examined(&self) -> u64 {
        self.stored.keys_examined() + self.assemble.examined().0
    }

    fn docs_examined(&self) -> u64 {
        self.stored.docs_examined() + self.assemble.examined().1
    }

    fn plan_summary(&self) -> String {
        self.stored.plan_summary()
    }
}
