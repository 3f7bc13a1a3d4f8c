//! From a logical document to what is stored, changing as few batches as possible.
//!
//! The old and the new array have a common beginning and a common end. Segments (the head is one, each batch is one)
//! that lie wholly in those stay as they are; the elements of the others, with what is new, are cut anew.

use espalier_query::Context;
use espalier_store::{Namespace, Transaction};
use espalier_value::{ArrayBuf, Code, DocBuf, Elem, Error, RawArray, RawDoc, Result, ValueRef};

use super::segments::{Batch, array, bytes, same};
use super::{CREATED, NUMBER, Outlier, SIZE};
use crate::bson::{array_at, id_of, with_fields, with_value, with_values};
use crate::stored::{by_id, delete, insert, replace};

/// What becomes of the batches.
#[derive(Default)]
struct Plan<'e> {
    /// Elements of the head.
    head: Vec<Elem<'e>>,
    /// Position among the old batches, and its new elements.
    rewrite: Vec<(usize, Vec<Elem<'e>>)>,
    /// Positions of batches that go.
    remove: Vec<usize>,
    /// Numbers and elements of new batches.
    add: Vec<(i64, Vec<Elem<'e>>)>,
}

impl Outlier {
    /// Stores the logical document `after` where `main` and `batches` are stored now. `main` is the document to
    /// replace.
    pub(super) fn store(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        main: RawDoc<'_>,
        batches: &[Batch],
        after: RawDoc<'_>,
        context: &Context,
    ) -> Result<()> {
        let Some(new) = array_at(after, self.array.parts()) else {
            // No array, no batches.
            self.drop_batches(tx, ns, batches.iter())?;
            return self.put_main(tx, ns, main, self.with_counts(after, 0, 0));
        };
        let new: Vec<Elem<'_>> = new.elems().collect();
        let plan = self.plan(main, batches, &new)?;
        let stored = batches.len() - plan.remove.len() + plan.add.len();
        let head = array(&plan.head);
        let with_head = with_value(after, self.array.parts(), ValueRef::Array(head.as_raw()));
        self.put_main(tx, ns, main, self.with_counts(with_head.as_raw(), new.len(), stored))?;
        self.drop_batches(tx, ns, plan.remove.iter().map(|&at| &batches[at]))?;
        let overflow = self.overflow(ns);
        for (at, elems) in &plan.rewrite {
            let old = batches[*at].doc.as_raw();
            let new = self.with_elements(old, array(elems).as_raw(), elems.len());
            if new.as_bytes() != old.as_bytes() {
                replace(tx, &overflow, new)?;
            }
        }
        for (number, elems) in &plan.add {
            self.add_batch(tx, ns, id_of(main), *number, &array(elems), context)?;
        }
        Ok(())
    }

    fn plan<'e>(&self, main: RawDoc<'e>, batches: &'e [Batch], new: &[Elem<'e>]) -> Result<Plan<'e>> {
        let head: Vec<Elem<'e>> = self.head(main).elems().collect();
        let fits = self.fitting(new, self.threshold) == new.len();
        // An array that shrinks to half the threshold folds back; between half and all of it batches stay, so that an
        // array around the threshold does not go back and forth.
        if fits && (batches.is_empty() || new.len() <= self.threshold / 2) {
            return Ok(Plan { head: new.to_vec(), remove: (0..batches.len()).collect(), ..Plan::default() });
        }
        // Segment 0 is the head, segment i is batch i - 1.
        let mut segments = vec![head];
        segments.extend(batches.iter().map(|b| self.elements(b.doc.as_raw()).elems().collect()));
        let old: Vec<Elem<'e>> = segments.iter().flatten().copied().collect();
        let prefix = old.iter().zip(new).take_while(|(a, b)| same(a, b)).count();
        let most = old.len().min(new.len()) - prefix;
        let suffix = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| same(a, b)).count();
        let starts: Vec<usize> = segments
            .iter()
            .scan(0, |at, segment| {
                let start = *at;
                *at += segment.len();
                Some(start)
            })
            .collect();
        // The segments that change: from the one the common beginning ends in to the one the common end begins in.
        let first = starts.iter().rposition(|&start| start <= prefix).unwrap_or(0);
        let mut last = starts.iter().rposition(|&start| start < old.len() - suffix).unwrap_or(0).max(first);
        if prefix == old.len() {
            last = segments.len() - 1;
        }
        let first = first.min(last);
        loop {
            let end = starts[last] + segments[last].len();
            let middle = &new[starts[first]..new.len() - (old.len() - end)];
            if let Some(plan) = self.cut(&segments, batches, first, last, middle) {
                return Ok(plan);
            }
            // No free number between this batch and the next: the next is cut anew, too.
            last += 1;
            if last == segments.len() {
                return Err(Error::internal("batches after the last one have numbers to spare"));
            }
        }
    }

    /// Cuts the elements of the segments `first..=last`; `None` if they need more batches than there are numbers for.
    fn cut<'e>(
        &self,
        segments: &[Vec<Elem<'e>>],
        batches: &[Batch],
        first: usize,
        last: usize,
        middle: &[Elem<'e>],
    ) -> Option<Plan<'e>> {
        let mut plan = Plan::default();
        let mut rest = middle;
        if first == 0 {
            let (head, more) = rest.split_at(self.fitting(rest, self.threshold));
            plan.head = head.to_vec();
            rest = more;
        } else {
            plan.head = segments[0].clone();
        }
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(self.fitting(rest, self.batch_size).max(1));
            pieces.push(piece.to_vec());
            rest = more;
        }
        // Segment i is batch i - 1.
        let touched: Vec<usize> = (first.max(1)..=last).map(|segment| segment - 1).collect();
        let before = if first.max(1) >= 2 { batches[first.max(1) - 2].number } else { 0 };
        let from = touched.last().map_or(before, |&at| batches[at].number) + 1;
        let until = batches.get(last).map_or(i64::MAX, |next| next.number);
        let missing = pieces.len().saturating_sub(touched.len()) as i64;
        if from.checked_add(missing)? > until {
            return None;
        }
        let mut pieces = pieces.into_iter();
        for &at in &touched {
            match pieces.next() {
                Some(piece) => plan.rewrite.push((at, piece)),
                None => plan.remove.push(at),
            }
        }
        plan.add = (from..).zip(pieces).collect();
        Some(plan)
    }

    /// How many of the elements fit into one segment of at most so many.
    pub(super) fn fitting(&self, elems: &[Elem<'_>], most: usize) -> usize {
        let mut size = 0;
        elems
            .iter()
            .take(most)
            .take_while(|elem| {
                size += bytes(elem);
                size <= self.batch_bytes
            })
            .count()
    }

    /// The document with the fields that the pattern owns.
    pub(super) fn with_counts(&self, doc: RawDoc<'_>, elements: usize, batches: usize) -> DocBuf {
        with_fields(doc, &self.counts(elements, batches))
    }

    /// The fields that the pattern owns.
    pub(super) fn counts(&self, elements: usize, batches: usize) -> [(&str, ValueRef<'static>); 3] {
        [
            (&*self.count, number(elements)),
            (&*self.flag, ValueRef::Bool(batches > 0)),
            (&*self.batches, number(batches)),
        ]
    }

    fn put_main(&self, tx: &mut dyn Transaction, ns: &Namespace, main: RawDoc<'_>, after: DocBuf) -> Result<()> {
        if main.as_bytes() == after.as_bytes() { Ok(()) } else { replace(tx, ns, after) }
    }

    fn drop_batches<'b>(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        batches: impl Iterator<Item = &'b Batch>,
    ) -> Result<()> {
        for batch in batches {
            delete(tx, &self.overflow(ns), by_id(id_of(batch.doc.as_raw()))?, false)?;
        }
        Ok(())
    }

    /// A batch with other elements.
    pub(super) fn with_elements(&self, batch: RawDoc<'_>, elements: RawArray<'_>, len: usize) -> DocBuf {
        with_values(batch, self.array.parts(), ValueRef::Array(elements), &[(SIZE, number(len))])
    }

    pub(super) fn add_batch(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        parent: ValueRef<'_>,
        at: i64,
        elements: &ArrayBuf,
        context: &Context,
    ) -> Result<()> {
        let at = i32::try_from(at).map_err(|_| Error::new(Code::Overflow, "outlier: too many batches"))?;
        let mut doc = DocBuf::new();
        doc.append("_id", ValueRef::ObjectId(new_id(context))).append(&self.parent, parent).append(NUMBER, at);
        let mut doc = with_value(doc.as_raw(), self.array.parts(), ValueRef::Array(elements.as_raw()));
        doc.append(SIZE, number(elements.len())).append(CREATED, ValueRef::DateTime(context.now_ms));
        insert(tx, &self.overflow(ns), &[doc.as_raw()])
    }
}

/// Counts are int32 as long as they fit, as a client would write them.
pub(super) fn number(n: usize) -> ValueRef<'static> {
    i32::try_from(n).map_or(ValueRef::Int64(n as i64), ValueRef::Int32)
}

/// An ObjectId from the command's clock and randomness.
fn new_id(context: &Context) -> [u8; 12] {
    let random =
        (context.random() * (1u64 << 53) as f64) as u64 ^ (((context.random() * (1u64 << 53) as f64) as u64) << 11);
    let mut id = [0; 12];
    id[..4].copy_from_slice(&((context.now_ms / 1000) as u32).to_be_bytes());
    id[4..].copy_from_slice(&random.to_be_bytes());
    id
}
