//! Checking the invariant over what is stored, mending it, and moving documents into the layout and out of it.

use std::sync::Arc;

use espalier_query::{Context, Filter};
use espalier_store::{Namespace, Transaction};
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawDoc, Result, Value, ValueRef, doc};

use super::segments::{Batch, bytes};
use super::{NUMBER, Outlier, SIZE};
use crate::bson::{array_at, id_of, value_at, whole, with_value, without};
use crate::declare::pending;
use crate::layout::Checked;
use crate::stored::{by, by_id, delete, get, query, replace};

/// Violations that are told one by one.
const TOLD_MAX: usize = 1_000;
/// What a plain document may measure.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

impl Outlier {
    pub(super) fn check_all(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked> {
        let mut checked = Checked::default();
        let migrating = at.collection(ns)?.is_some_and(|info| pending(info.options.listed.as_raw()).is_some());
        let mut mains = at.find(ns, &query(Arc::new(Filter::empty())))?;
        while mains.advance()? && checked.violations.len() < TOLD_MAX {
            context.interrupt.check()?;
            checked.documents += 1;
            let main = mains.doc();
            let batches = self.stored_batches(at, ns, id_of(main))?;
            // Not in the layout yet, or no longer.
            if migrating && batches.is_empty() && main.get(&self.batches).is_none() {
                continue;
            }
            for wrong in self.violations(main, &batches) {
                checked.violations.push((format!("{ns}, _id {}: {wrong}", id_of(main)), Value::own(id_of(main))));
            }
        }
        self.check_orphans(at, ns, context, &mut checked)?;
        Ok(checked)
    }

    /// What is wrong with one logical document, in words.
    fn violations(&self, main: RawDoc<'_>, batches: &[Batch]) -> Vec<String> {
        let mut wrong = Vec::new();
        let head = self.head(main);
        let sizes: Vec<usize> = batches.iter().map(|b| self.elements(b.doc.as_raw()).len()).collect();
        let total = head.len() + sizes.iter().sum::<usize>();
        let mut expect = |name: &str, is: Option<i64>, should: usize| {
            if is != Some(should as i64) {
                let is = is.map_or("missing".to_string(), |n| n.to_string());
                wrong.push(format!("'{name}' is {is} and should be {should}"));
            }
        };
        expect(&self.count, whole(main.get(&self.count)), total);
        expect(&self.batches, whole(main.get(&self.batches)), batches.len());
        if !matches!(main.get(&self.flag), Some(ValueRef::Bool(flag)) if flag != batches.is_empty()) {
            wrong.push(format!("'{}' should be {}", self.flag, !batches.is_empty()));
        }
        if head.len() > self.threshold {
            wrong.push(format!("{} elements in the main document, more than {}", head.len(), self.threshold));
        }
        if !batches.is_empty() && array_at(main, self.array.parts()).is_none() {
            wrong.push(format!("there are batches, but '{}' is no array", self.array));
        }
        for (batch, size) in batches.iter().zip(sizes) {
            let number = batch.number;
            if size == 0 {
                wrong.push(format!("batch {number} is empty"));
            }
            if size > self.batch_size {
                wrong.push(format!("batch {number} has {size} elements, more than {}", self.batch_size));
            }
            if whole(batch.doc.as_raw().get(SIZE)) != Some(size as i64) {
                wrong.push(format!("'{SIZE}' of batch {number} should be {size}"));
            }
            let weight: usize = self.elements(batch.doc.as_raw()).elems().map(|e| bytes(&e)).sum();
            if size > 1 && weight > self.batch_bytes {
                wrong.push(format!("batch {number} has {weight} bytes, more than {}", self.batch_bytes));
            }
        }
        for pair in batches.windows(2) {
            if pair[0].number >= pair[1].number {
                wrong.push(format!("two batches have the number {}", pair[1].number));
            }
        }
        wrong
    }

    /// Batches whose main document does not exist.
    fn check_orphans(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        context: &Context,
        checked: &mut Checked,
    ) -> Result<()> {
        let overflow = self.overflow(ns);
        let mut batches = at.find(&overflow, &query(Arc::new(Filter::empty())))?;
        let mut known: Option<(Vec<u8>, bool)> = None;
        while batches.advance()? && checked.violations.len() < TOLD_MAX {
            context.interrupt.check()?;
            let doc = batches.doc();
            let parent = doc.get(&self.parent).unwrap_or(ValueRef::Null);
            let key = espalier_value::key::of(parent);
            let there = match &known {
                Some((last, there)) if *last == key => *there,
                _ => get(at, ns, parent)?.is_some(),
            };
            if !there {
                let text = format!(
                    "{overflow}, batch {} of {parent}: there is no document with this _id in {ns}",
                    whole(doc.get(NUMBER)).unwrap_or(0)
                );
                checked.violations.push((text, Value::own(parent)));
            }
            known = Some((key, there));
        }
        Ok(())
    }

    /// Brings what is stored for one `_id` in line with the invariant. Elements are kept: a batch without a main
    /// document is the one thing that goes.
    pub(super) fn repair_one(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        // Each with randomness of its own, for the `_id`s of batches.
        let context = crate::job::own_context();
        let batches = self.stored_batches(tx, ns, id)?;
        let Some(main) = get(tx, ns, id)? else {
            for batch in &batches {
                delete(tx, &self.overflow(ns), by_id(id_of(batch.doc.as_raw()))?, false)?;
            }
            return Ok(());
        };
        if self.violations(main.as_raw(), &batches).is_empty() {
            return Ok(());
        }
        let mut main = main;
        if !batches.is_empty() && array_at(main.as_raw(), self.array.parts()).is_none() {
            if value_at(main.as_raw(), self.array.parts()).is_some() {
                return Err(Error::new(
                    Code(354),
                    format!("outlier: '{}' of _id {id} is no array, but has batches; mend it with rawData", self.array),
                ));
            }
            main = with_value(main.as_raw(), self.array.parts(), ValueRef::Array(ArrayBuf::new().as_raw()));
        }
        let logical = self.logical(main.as_raw(), &batches);
        // From nothing, so that sizes and numbers are all made anew.
        delete(tx, &self.overflow(ns), by(&self.parent, id)?, true)?;
        let plain = with_value(main.as_raw(), self.array.parts(), ValueRef::Array(ArrayBuf::new().as_raw()));
        replace(tx, ns, plain.clone())?;
        self.store(tx, ns, plain.as_raw(), &[], logical.as_raw(), &context)
    }

    /// Brings one document into the layout.
    pub(super) fn move_in(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        context: &Context,
    ) -> Result<bool> {
        let Some(main) = get(tx, ns, id)? else { return Ok(false) };
        if main.as_raw().get(&self.batches).is_some()
            && self.violations(main.as_raw(), &self.batches_of(tx, ns, main.as_raw())?).is_empty()
        {
            return Ok(false);
        }
        let batches = self.stored_batches(tx, ns, id)?;
        let logical = self.logical(main.as_raw(), &batches);
        self.store(tx, ns, main.as_raw(), &batches, logical.as_raw(), context)?;
        Ok(true)
    }

    /// Folds one document back to a plain one, without the fields of the pattern.
    pub(super) fn move_out(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<bool> {
        let Some(main) = get(tx, ns, id)? else { return Ok(false) };
        if main.as_raw().get(&self.batches).is_none() {
            return Ok(false);
        }
        let batches = self.batches_of(tx, ns, main.as_raw())?;
        let logical = self.logical(main.as_raw(), &batches);
        let plain: DocBuf = without(logical.as_raw(), &self.owned());
        if plain.len_bytes() > DOCUMENT_BYTES_MAX {
            return Err(Error::new(
                Code::BSONObjectTooLarge,
                format!(
                    "the document with _id {id} would measure {} bytes without the pattern 'outlier'; shorten '{}' \
                     or delete it, then drop the pattern",
                    plain.len_bytes(),
                    self.array
                ),
            ));
        }
        replace(tx, ns, plain)?;
        if !batches.is_empty() {
            delete(tx, &self.overflow(ns), by(&self.parent, id)?, true)?;
        }
        Ok(true)
    }

    /// Numbers for `collStats`.
    pub(super) fn health_of(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        let overflow = self.overflow(ns);
        let stats = at.coll_stats(&overflow)?;
        let mut with_batches = DocBuf::new();
        with_batches.append(&self.flag, true);
        let filter = Arc::new(Filter::parse(with_batches.as_raw(), &Default::default())?);
        let outliers = at.count(ns, &query(filter))?;
        Ok(doc! {
            "array": self.array.as_str(),
            "outliers": outliers as i64,
            "overflowDocuments": stats.count as i64,
            "overflowSize": stats.size as i64,
            "overflowStorageSize": stats.storage_size as i64,
        })
    }
}
