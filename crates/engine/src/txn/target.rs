//! What updates and deletes share: finding the documents to write, looking at one again behind its lock, and the
//! image of it that `findAndModify` gives back.

use std::sync::Arc;

use espalier_query::projection::Projection;
use espalier_query::sort::Sort;
use espalier_query::{Context, Filter};
use espalier_store::{Find, Hint};
use espalier_value::{DocBuf, RawDoc, Result};

use super::Txn;
use crate::catalog::Collection;
use crate::layout::RecordId;

/// What is looked for.
pub struct Wanted<'w> {
    pub filter: &'w Arc<Filter>,
    pub context: &'w Arc<Context>,
    pub sort: &'w Option<Arc<Sort>>,
    pub hint: &'w Option<Hint>,
    pub projection: &'w Option<Arc<Projection>>,
}

/// A document about to be written, as it is behind its lock.
pub struct Target {
    pub collection: Arc<Collection>,
    pub doc: DocBuf,
    /// The array element that matched, if it was asked for.
    pub position: Option<usize>,
}

impl Wanted<'_> {
    /// The find that leads to the documents.
    pub fn find(&self, limit: Option<u64>) -> Find {
        Find {
            sort: self.sort.clone(),
            hint: self.hint.clone(),
            limit,
            ..Find::new(self.filter.clone(), self.context.clone())
        }
    }

    /// The document as it is now; `None` if it is gone or no longer matches. Outside a transaction the caller holds
    /// the record's lock, so nobody else writes it between this look and the commit.
    pub fn look_again(
        &self,
        txn: &mut Txn,
        collection: &Collection,
        record: RecordId,
        found: &DocBuf,
        needs_position: bool,
    ) -> Result<Option<Target>> {
        let mut changed = None;
        if txn.is_auto() {
            txn.refresh();
            match txn.view().get(&collection.record_key(record))? {
                None => return Ok(None),
                Some(now) if *now == *found.as_bytes() => {}
                Some(now) => changed = Some(DocBuf::from_raw(RawDoc::trusted(&now))),
            }
        }
        // The collection may have been dropped, or got another index, since the document was found.
        let collection = match txn.existing(&collection.ns) {
            Some(now) if now.id == collection.id => now,
            _ => return Ok(None),
        };
        let check = changed.is_some() || needs_position;
        let doc = changed.unwrap_or_else(|| found.clone());
        let mut position = None;
        if check {
            match self.filter.matches_at(doc.as_raw(), self.context)? {
                Some(matched) => position = matched.position,
                None => return Ok(None),
            }
        }
        Ok(Some(Target { collection, doc, position }))
    }

    /// A document as the client gets it back.
    pub fn image(&self, doc: RawDoc<'_>) -> Result<DocBuf> {
        let Some(projection) = self.projection else { return Ok(DocBuf::from_raw(doc)) };
        let position = match projection.needs_position() {
            true => self.filter.matches_at(doc, self.context)?.and_then(|matched| matched.position),
            false => None,
        };
        let mut out = DocBuf::new();
        projection.apply(doc, position, self.context, &mut out)?;
        Ok(out)
    }
}
