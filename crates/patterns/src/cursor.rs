//! The cursor of a find on logical documents: stored documents in, put together, filtered, sorted, cut and projected.

use std::sync::Arc;

use espalier_query::projection::Projection;
use espalier_query::sort::Sort;
use espalier_query::stage::Run;
use espalier_query::stage::sorter::{Sorted, Sorter};
use espalier_query::{Context, Filter};
use espalier_store::{Cursor, Find};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

use crate::shown::{Documents, Part, Shown};

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

impl Rest {
    /// Nothing is left to be done.
    pub fn nothing(context: &Arc<Context>, run: Run) -> Rest {
        Rest { filter: None, sort: None, skip: 0, limit: None, projection: None, context: context.clone(), run }
    }
}

/// The cursor of a find on logical documents.
pub type Logical = Shown<Assembled>;

/// The documents that `stored` gives, put together and with what is left done about them.
pub fn logical(stored: Box<dyn Cursor>, assemble: Box<dyn Assemble>, rest: Rest) -> Logical {
    let Rest { filter, sort, skip, limit, projection, context, run } = rest;
    let keep = limit.map(|limit| limit.saturating_add(skip));
    let part = Part { skip, limit, projection, context: context.clone() };
    let assembled = Assembled {
        stored,
        assemble,
        filter,
        sort: sort.map(|sort| (sort, keep, run)),
        context,
        sorted: None,
        whole: None,
    };
    Shown::new(assembled, part)
}

/// Logical documents that match, in order.
pub struct Assembled {
    stored: Box<dyn Cursor>,
    assemble: Box<dyn Assemble>,
    filter: Option<Arc<Filter>>,
    /// The sort that is still to be done, and how many of its first are needed.
    sort: Option<(Arc<Sort>, Option<u64>, Run)>,
    context: Arc<Context>,
    sorted: Option<Box<Sorted>>,
    /// The logical document, where it is not the stored one.
    whole: Option<DocBuf>,
}

impl Assembled {
    /// The next logical document that matches, in the order of the stored ones.
    fn next_found(&mut self) -> Result<bool> {
        while self.stored.advance()? {
            self.context.interrupt.check()?;
            let before = self.assemble.examined();
            self.whole = self.assemble.assemble(self.stored.doc())?;
            let after = self.assemble.examined();
            self.context.work.examined(after.0 - before.0, after.1 - before.1);
            match &self.filter {
                Some(filter) if !filter.matches(self.document(), &self.context)? => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    fn sort(&mut self, sort: &Sort, keep: Option<u64>, run: &Run) -> Result<()> {
        let mut sorter = Sorter::new("Sort", keep, run);
        let mut key = Vec::new();
        while self.next_found()? {
            key.clear();
            let doc = self.document();
            sort.key(doc, &mut key)?;
            sorter.push(&key, doc)?;
        }
        self.sorted = Some(Box::new(sorter.finish()?));
        Ok(())
    }
}

impl Documents for Assembled {
    fn next(&mut self) -> Result<bool> {
        if let Some((sort, keep, run)) = self.sort.take() {
            self.sort(&sort, keep, &run)?;
        }
        match &mut self.sorted {
            Some(sorted) => sorted.advance(),
            None => self.next_found(),
        }
    }

    fn document(&self) -> RawDoc<'_> {
        match (&self.sorted, &self.whole) {
            (Some(sorted), _) => sorted.doc(),
            (None, Some(whole)) => whole.as_raw(),
            (None, None) => self.stored.doc(),
        }
    }

    fn examined(&self) -> (u64, u64) {
        let (keys, docs) = self.assemble.examined();
        (self.stored.keys_examined() + keys, self.stored.docs_examined() + docs)
    }

    fn plan_summary(&self) -> String {
        self.stored.plan_summary()
    }
}
