//! Inserting logical documents.

use espalier_store::{Insert, Inserted, Namespace, Transaction, Update};
use espalier_value::{DocBuf, Elem, RawDoc, Result, ValueRef};

use super::Outlier;
use super::segments::array;
use crate::bson::{array_at, id_of, whole, with_value};
use crate::stored::insert_each;
use crate::validator::Validator;

impl Outlier {
    pub(super) fn insert_all(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
        how: &Insert,
    ) -> Result<Inserted> {
        insert_each(docs, how, |doc| Ok(self.insert_one(tx, ns, doc, how)?.err()))
    }

    /// The inner error is the document's own; after it nothing of the document is stored.
    fn insert_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        doc: RawDoc<'_>,
        how: &Insert,
    ) -> Result<Result<()>> {
        let elems: Vec<Elem<'_>> = match array_at(doc, self.array.parts()) {
            Some(array) => array.elems().collect(),
            None => Vec::new(),
        };
        let pieces = self.pieces(&elems);
        let (head, batches) = pieces.split_first().map_or((&[][..], &[][..]), |(head, rest)| (*head, rest));
        let stored = match array_at(doc, self.array.parts()) {
            Some(_) => with_value(doc, self.array.parts(), ValueRef::Array(array(head).as_raw())),
            None => DocBuf::from_raw(doc),
        };
        let stored = self.with_counts(stored.as_raw(), elems.len(), batches.len());
        if let Err(error) = self.check_owned(doc, stored.as_raw()) {
            return Ok(Err(error));
        }
        let checked_here = match Validator::of(tx, ns)? {
            Some(validator) if !how.bypass_validation && self.is_read(&validator.dependencies()) => {
                if let Err(error) = validator.check(doc, None, &how.context) {
                    return Ok(Err(error));
                }
                true
            }
            _ => false,
        };
        let how = Insert { bypass_validation: how.bypass_validation || checked_here, ..how.clone() };
        if let Some((_, error)) = tx.insert(ns, &[stored.as_raw()], &how)?.errors.into_iter().next() {
            return Ok(Err(error));
        }
        for (number, elems) in (1..).zip(batches) {
            self.add_batch(tx, ns, id_of(doc), number, &array(elems), &how.context)?;
        }
        Ok(Ok(()))
    }

    /// The logical document that an insert leaves.
    pub(super) fn as_inserted(&self, doc: RawDoc<'_>) -> DocBuf {
        let elems: Vec<Elem<'_>> = array_at(doc, self.array.parts()).map(|a| a.elems().collect()).unwrap_or_default();
        self.with_counts(doc, elems.len(), self.pieces(&elems).len() - 1)
    }

    /// The elements cut into the head and full batches; the head is always the first.
    fn pieces<'s, 'e>(&self, mut elems: &'s [Elem<'e>]) -> Vec<&'s [Elem<'e>]> {
        let mut pieces = Vec::new();
        let mut most = self.threshold;
        loop {
            let fit = self.fitting(elems, most);
            // The head may stay empty before an element that is too large for it; a batch may not.
            let fit = if pieces.is_empty() { fit } else { fit.max(1) };
            let (piece, rest) = elems.split_at(fit.min(elems.len()));
            pieces.push(piece);
            elems = rest;
            most = self.batch_size;
            if elems.is_empty() {
                return pieces;
            }
        }
    }

    /// A client may bring an owned field along if it says what the pattern says.
    fn check_owned(&self, doc: RawDoc<'_>, stored: RawDoc<'_>) -> Result<()> {
        for name in self.owned() {
            let (theirs, ours) = (doc.get(name), stored.get(name));
            let same = match (theirs, ours) {
                (None, _) => true,
                (Some(ValueRef::Bool(a)), Some(ValueRef::Bool(b))) => a == b,
                (theirs, ours) => whole(theirs).is_some() && whole(theirs) == whole(ours),
            };
            if !same {
                return Err(self.not_yours(name));
            }
        }
        Ok(())
    }

    pub(super) fn check_valid(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        after: RawDoc<'_>,
        before: Option<RawDoc<'_>>,
        update: &Update,
    ) -> Result<()> {
        match Validator::of(at, ns)? {
            Some(validator) if !update.bypass_validation => validator.check(after, before, &update.context),
            _ => Ok(()),
        }
    }
}
