//! Moving plain documents into buckets, and back.

use std::sync::Arc;

use espalier_query::stage::Run;
use espalier_query::stage::sorter::Sorter;
use espalier_query::{Context, Filter};
use espalier_store::{Insert, Inserted, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef, doc, key};

use super::Bucket;
use crate::bson::id_of;
use crate::layout::Move;
use crate::stored::{filter, get, insert, insert_each, insert_one, query, remove, sort};

/// Documents that go into buckets together may be this large.
const TOGETHER_BYTES: usize = 4 << 20;

impl Bucket {
    /// Refuses to be declared on documents that could not be readings.
    pub(super) fn check_fit(&self, at: &dyn Transaction, ns: &Namespace) -> Result<()> {
        for index in at.indexes(ns)? {
            self.for_buckets(&index.spec)?;
        }
        let mut keys = Sorter::new("bucket", None, &Run::new(Arc::new(Context::default())));
        let mut docs = at.find(ns, &query(Arc::new(Filter::empty())))?;
        while docs.advance()? {
            let doc = docs.doc();
            let group = self.group(doc).map_err(|error| {
                error.context(&format!("patterns: the document with _id {} of {ns} does not fit", id_of(doc)))
            })?;
            if !self.key.is_empty() {
                let mut place = group.bytes();
                place.extend_from_slice(&self.key_of(doc));
                let mut id = DocBuf::new();
                id.append("_id", id_of(doc));
                keys.push(&place, id.as_raw())?;
            }
        }
        let mut keys = keys.finish()?;
        let mut last: Option<(Vec<u8>, DocBuf)> = None;
        while keys.advance()? {
            if let Some((_, other)) = last.take_if(|(place, _)| place == keys.key()) {
                let message = format!(
                    "patterns: the documents with _id {} and {} of {ns} have the same key",
                    id_of(other.as_raw()),
                    id_of(keys.doc())
                );
                return Err(Error::new(Code::DuplicateKey, message));
            }
            last = Some((keys.key().to_vec(), DocBuf::from_raw(keys.doc())));
        }
        Ok(())
    }

    /// Brings a plain document into its bucket, and some that follow it along: one bucket then takes many with one
    /// write.
    pub(super) fn move_in(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        moved: Move<'_>,
        context: &Context,
    ) -> Result<bool> {
        if get(tx, ns, moved.id)?.is_none() {
            return Ok(false);
        }
        let mut from = DocBuf::new();
        from.append_doc("_id", |doc| {
            doc.append("$gte", moved.id);
        });
        let mut find = query(filter(&from)?);
        find.sort = sort(&doc! { "_id": 1 })?;
        find.limit = Some(moved.most as u64);
        let mut cursor = tx.find(ns, &find)?;
        let (mut docs, mut bytes) = (Vec::new(), 0);
        while bytes < TOGETHER_BYTES && cursor.advance()? {
            bytes += cursor.doc().as_bytes().len();
            docs.push(DocBuf::from_raw(cursor.doc()));
        }
        let docs: Vec<RawDoc<'_>> = docs.iter().map(DocBuf::as_raw).collect();
        for doc in &docs {
            remove(tx, ns, id_of(*doc))?;
        }
        let how = Insert {
            ordered: true,
            bypass_validation: true,
            statements: None,
            context: Arc::new(Context::new(context.now_ms, (context.random() * (1u64 << 53) as f64) as u64)),
        };
        match self.insert_all(tx, ns, &docs, &how)?.errors.into_iter().next() {
            None => Ok(true),
            Some((_, error)) => Err(error),
        }
    }

    /// Makes plain documents of the readings in the bucket that holds this one.
    pub(super) fn move_out(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<bool> {
        let Some(found) = self.locate(tx, ns, id)? else { return Ok(false) };
        let stored = found.stored.as_raw();
        let readings: Vec<DocBuf> = self.entries(stored).into_iter().map(|entry| self.reading(stored, entry)).collect();
        remove(tx, &self.buckets(ns), id_of(stored))?;
        let readings: Vec<RawDoc<'_>> = readings.iter().map(DocBuf::as_raw).collect();
        insert(tx, ns, &readings)?;
        Ok(true)
    }

    /// An insert while the pattern is being folded back: plain documents, whose `_id`s must not be in a bucket either.
    pub(super) fn insert_plain(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
        how: &Insert,
    ) -> Result<Inserted> {
        let taken = self.taken_ids(tx, ns, docs)?;
        insert_each(docs, how, |doc| match taken.contains(&key::of(id_of(doc))) {
            true => Ok(Some(self.duplicate_id(ns, id_of(doc)))),
            false => insert_one(tx, ns, doc, how),
        })
    }
}
