//! `subset`: the first few documents of another collection, kept in the one they belong to.
//!
//! Invariant: the list equals `find(belonging).sort(sort).limit(limit)` on the source.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `from` | required | the collection whose documents are shown |
//! | `on` | required | `{productId: "_id"}`: the field of the source that equals which field of this collection |
//! | `into` | required | the path of the list |
//! | `sort` | required | the order; where it leaves one open, `_id` decides |
//! | `limit` | 10 | the most entries |
//! | `fields` | all | the paths that an entry has; `_id` it always has |
//! | `freshness` | `commit` | or a time such as `1s`: how much later the list may follow |
//!
//! The source gets an index on `on` and `sort`, so that a change costs a look at as many entries as the list has.

mod declare;

use std::sync::Arc;
use std::time::Duration;

use espalier_query::Context;
use espalier_query::sort::Sort;
use espalier_store::{Namespace, Transaction};
use espalier_value::{ArrayBuf, DocBuf, Path, RawDoc, Result, Value};

pub use declare::SUBSET;

use crate::bson::{id_of, value_at, with_value};
use crate::derive::{Key, Link, Moved, Patch, Reads, Summary};
use crate::freshness::Freshness;

/// A declaration, read.
#[derive(Debug)]
pub(crate) struct Subset {
    link: Link,
    into: Vec<Path>,
    sort: Arc<Sort>,
    sorted_by: Vec<(Path, bool)>,
    limit: usize,
    /// Empty: all of them.
    fields: Vec<Path>,
    reads: Reads,
    freshness: Freshness,
}

impl Summary for Subset {
    fn kind(&self) -> &'static str {
        "subset"
    }

    fn link(&self) -> &Link {
        &self.link
    }

    fn reads(&self) -> &Reads {
        &self.reads
    }

    fn owns(&self) -> &[Path] {
        &self.into
    }

    fn behind(&self) -> Vec<Vec<(Path, bool)>> {
        vec![self.sorted_by.clone()]
    }

    fn anew(&self, at: &dyn Transaction, ns: &Namespace, key: Option<&Key>, context: &Context) -> Result<Patch> {
        let mut list = ArrayBuf::new();
        if let Some(key) = key {
            self.link.members(at, ns, key, Some(self.sort.clone()), |doc| {
                context.interrupt.check()?;
                list.push(self.entry(doc).as_raw());
                Ok(list.len() < self.limit)
            })?;
        }
        let mut patch = Patch::default();
        patch.put(self.into[0].clone(), Value::array(list));
        Ok(patch)
    }

    fn within(&self) -> Option<Duration> {
        self.freshness.within
    }

    fn noted(&self) -> Option<&Path> {
        // It is always computed anew, and twice is as good as once.
        None
    }

    fn told(&self, _: &Moved<'_>, _: &Context) -> Result<Option<Patch>> {
        Ok(None)
    }

    fn adjusted(&self, at: &dyn Transaction, ns: &Namespace, moved: &Moved<'_>, context: &Context) -> Result<Patch> {
        // The index has the first few together; what came and went tells nothing cheaper.
        self.anew(at, ns, Some(moved.key), context)
    }
}

impl Subset {
    fn entry(&self, doc: RawDoc<'_>) -> DocBuf {
        if self.fields.is_empty() {
            return DocBuf::from_raw(doc);
        }
        let mut entry = DocBuf::new();
        entry.append("_id", id_of(doc));
        for path in &self.fields {
            if let Some(value) = value_at(doc, path.parts()) {
                entry = with_value(entry.as_raw(), path.parts(), value);
            }
        }
        entry
    }
}
