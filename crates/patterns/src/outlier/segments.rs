//! A logical document as it is stored: the main document and its batches.

use std::sync::Arc;

use espalier_query::sort::Sort;
use espalier_store::{Find, Hint, Namespace, Transaction};
use espalier_value::{ArrayBuf, DocBuf, Elem, RawArray, RawDoc, Result, ValueRef};

use super::{NUMBER, ORDER_INDEX, Outlier};
use crate::bson::{array_at, id_of, whole, with_value};
use crate::stored::{by, query, sort};

/// Batches by their number.
pub fn in_order(direction: i32) -> Result<Option<Arc<Sort>>> {
    let mut order = DocBuf::new();
    order.append(NUMBER, direction);
    sort(&order)
}

/// The index that leads to batches by their number. It is named, so that nobody looks at the one with their sizes: an append
/// takes an entry out of that one and puts another in, and whoever walks it meets all that are gone.
fn by_order() -> Option<Hint> {
    Some(Hint::Name(ORDER_INDEX.into()))
}

/// One batch document.
pub struct Batch {
    pub doc: DocBuf,
    pub number: i64,
}

impl Outlier {
    /// The namespace of the batches.
    pub(super) fn overflow(&self, ns: &Namespace) -> Namespace {
        Namespace::new(ns.db(), &self.into)
    }

    /// The number of batches the main document speaks of; none for a document that the pattern has not seen yet.
    pub(super) fn batch_count(&self, main: RawDoc<'_>) -> i64 {
        whole(main.get(&self.batches)).unwrap_or(0).max(0)
    }

    /// The elements in the main document.
    pub(super) fn head<'a>(&self, main: RawDoc<'a>) -> RawArray<'a> {
        array_at(main, self.array.parts()).unwrap_or(RawArray::EMPTY)
    }

    /// The elements of a batch.
    pub(super) fn elements<'a>(&self, batch: RawDoc<'a>) -> RawArray<'a> {
        array_at(batch, self.array.parts()).unwrap_or(RawArray::EMPTY)
    }

    /// All batches of a document, in order.
    pub(super) fn batches_of(&self, at: &dyn Transaction, ns: &Namespace, main: RawDoc<'_>) -> Result<Vec<Batch>> {
        if self.batch_count(main) == 0 {
            return Ok(Vec::new());
        }
        self.stored_batches(at, ns, id_of(main))
    }

    /// All batches stored for a parent, whatever the main document says.
    pub(super) fn stored_batches(&self, at: &dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<Vec<Batch>> {
        let mut find: Find = query(by(&self.parent, id)?);
        find.sort = in_order(1)?;
        find.hint = by_order();
        let mut cursor = at.find(&self.overflow(ns), &find)?;
        let mut batches = Vec::new();
        while cursor.advance()? {
            let doc = DocBuf::from_raw(cursor.doc());
            let number = whole(doc.as_raw().get(NUMBER)).unwrap_or(0);
            batches.push(Batch { doc, number });
        }
        Ok(batches)
    }

    /// The last batch of a document.
    pub(super) fn last_batch(&self, at: &dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<Option<Batch>> {
        let mut find = query(by(&self.parent, id)?);
        find.sort = in_order(-1)?;
        find.hint = by_order();
        find.limit = Some(1);
        let mut cursor = at.find(&self.overflow(ns), &find)?;
        if !cursor.advance()? {
            return Ok(None);
        }
        let doc = DocBuf::from_raw(cursor.doc());
        let number = whole(doc.as_raw().get(NUMBER)).unwrap_or(0);
        Ok(Some(Batch { doc, number }))
    }

    /// The logical document: the main one with the whole array.
    pub(super) fn logical(&self, main: RawDoc<'_>, batches: &[Batch]) -> DocBuf {
        if batches.is_empty() {
            return DocBuf::from_raw(main);
        }
        let mut array = ArrayBuf::from_raw(self.head(main));
        for batch in batches {
            self.elements(batch.doc.as_raw()).elems().for_each(|elem| {
                array.push_elem(elem);
            });
        }
        with_value(main, self.array.parts(), ValueRef::Array(array.as_raw()))
    }
}

/// Whether two elements hold the same value, byte for byte.
pub fn same(a: &Elem<'_>, b: &Elem<'_>) -> bool {
    a.type_byte() == b.type_byte() && a.value_bytes() == b.value_bytes()
}

/// Bytes an element takes in an array, its name included.
pub fn bytes(elem: &Elem<'_>) -> usize {
    elem.value_bytes().len() + 8
}

/// An array of these elements.
pub fn array(elems: &[Elem<'_>]) -> ArrayBuf {
    let mut array = ArrayBuf::new();
    elems.iter().for_each(|elem| {
        array.push_elem(*elem);
    });
    array
}
