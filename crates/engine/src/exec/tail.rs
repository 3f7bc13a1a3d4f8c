//! Tailable cursors: the documents of a capped collection in the order they came, and those that come later.

use std::sync::Arc;

use espalier_query::Stream;
use espalier_store::{Cursor, Find};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

use crate::catalog::Collection;
use crate::core::Core;
use crate::layout::{RecordId, record_at_end, record_key, tree_range};
use crate::view::View;

pub struct TailCursor {
    core: Arc<Core>,
    collection: Arc<Collection>,
    find: Find,
    /// The last record looked at; 0 before the first.
    at: RecordId,
    view: View,
    doc: DocBuf,
    examined: u64,
    to_skip: u64,
}

impl TailCursor {
    pub fn open(core: Arc<Core>, view: &View, collection: Arc<Collection>, find: &Find) -> Result<TailCursor> {
        if find.sort.is_some() {
            return Err(Error::bad_value(
                "error processing query: cannot use tailable option with a sort other than {$natural: 1}",
            ));
        }
        find.context.work.planned(&Arc::new("COLLSCAN"));
        Ok(TailCursor {
            core,
            collection,
            at: 0,
            view: view.clone(),
            doc: DocBuf::new(),
            examined: 0,
            to_skip: find.skip,
            find: find.clone(),
        })
    }

    /// The next match after `at` in the view.
    fn step(&mut self) -> Result<bool> {
        let (low, high) = tree_range(self.collection.id);
        let from = if self.at == 0 { low.to_vec() } else { record_key(self.collection.id, self.at + 1).to_vec() };
        let mut scan = self.view.scan(&from, &high, false)?;
        while scan.next()? {
            self.find.context.interrupt.check()?;
            self.at = record_at_end(scan.key());
            self.examined += 1;
            self.find.context.work.examined(0, 1);
            let doc = RawDoc::trusted(scan.value());
            if !self.find.filter.matches(doc, &self.find.context)? {
                continue;
            }
            if self.to_skip > 0 {
                self.to_skip -= 1;
                continue;
            }
            match &self.find.projection {
                Some(projection) => projection.apply(doc, None, &self.find.context, &mut self.doc)?,
                None => self.doc = DocBuf::from_raw(doc),
            }
            return Ok(true);
        }
        Ok(false)
    }
}

impl Stream for TailCursor {
    /// False at the end of what there is; a later call may find more.
    fn advance(&mut self) -> Result<bool> {
        if self.step()? {
            return Ok(true);
        }
        let (view, catalog) = self.core.capture();
        if catalog.get(&self.collection.ns).is_none_or(|now| now.id != self.collection.id) {
            return Err(Error::new(Code::QueryPlanKilled, "collection dropped while a tailable cursor was open on it"));
        }
        // The collection may have come round and removed the document the cursor stands on.
        if self.at != 0 && view.get(&record_key(self.collection.id, self.at))?.is_none() {
            return Err(Error::new(
                Code::CappedPositionLost,
                format!(
                    "CollectionScan died due to position in capped collection being deleted. Last seen record id: RecordId({})",
                    self.at
                ),
            ));
        }
        self.view = view;
        self.step()
    }

    fn doc(&self) -> RawDoc<'_> {
        self.doc.as_raw()
    }
}

impl Cursor for TailCursor {
    fn keys_examined(&self) -> u64 {
        0
    }

    fn docs_examined(&self) -> u64 {
        self.examined
    }

    fn plan_summary(&self) -> String {
        "COLLSCAN".to_string()
    }

    fn is_tailable(&self) -> bool {
        true
    }
}
