//! `reference`: fields of a document of another collection, copied into those that refer to it.
//!
//! Invariant: a document that refers to one that is there has its fields as they are (`follow`), or as they were when it
//! was written (`snapshot`).
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `from` | required | the collection whose fields are copied |
//! | `on` | required | `{customerId: "_id"}`: the field of this collection that equals which field of the other |
//! | `into` | required | the object in which the copies are kept |
//! | `fields` | required | the paths that are copied |
//! | `mode` | `follow` | `snapshot`: copied when the document is written, and then left as it is |
//! | `onDelete` | `keep` | what becomes of those who refer to a deleted document: `unset`, `cascade`, `restrict` |
//! | `inCommit` | 10000 | copies that a change brings up to date in its own commit; beyond that in the background |

mod declare;
mod fan_out;

use std::sync::Arc;

use espalier_query::Filter;
use espalier_store::{Change, Delete, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, Value, doc};

pub use declare::REFERENCE;

use crate::bson::{id_of, value_at};
use crate::derive::{Derivation, Key, Link, Patch, Reads, gate, marks};
use crate::write::Write;

/// A declaration, read.
#[derive(Debug)]
pub(crate) struct Reference {
    link: Link,
    /// Each path of the source and where its copy is kept.
    fields: Vec<(Path, Path)>,
    owns: Vec<Path>,
    reads: Reads,
    mode: Mode,
    on_delete: OnDelete,
    in_commit: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Follow,
    Snapshot,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OnDelete {
    Keep,
    Unset,
    Cascade,
    Restrict,
}

impl Derivation for Reference {
    fn kind(&self) -> &'static str {
        "reference"
    }

    fn source(&self) -> &str {
        &self.link.from
    }

    fn reads(&self) -> &Reads {
        &self.reads
    }

    fn owns(&self) -> &[Path] {
        &self.owns
    }

    fn depends(&self) -> Vec<&str> {
        self.link.depends()
    }

    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        gate::prepare(tx, ns)?;
        self.link.prepare(tx, ns, &[])
    }

    fn expected(&self, at: &dyn Transaction, ns: &Namespace, doc: RawDoc<'_>) -> Result<Patch> {
        let copied = self.mode == Mode::Snapshot && self.owns.iter().any(|own| value_at(doc, own.parts()).is_some());
        let key = self.link.own_key(doc);
        // What was copied once stays, whatever it was a copy of.
        if copied { Ok(Patch::default()) } else { self.copy(at, ns, key.as_ref()) }
    }

    fn is_behind(&self, at: &dyn Transaction, ns: &Namespace, doc: RawDoc<'_>) -> Result<bool> {
        match self.link.own_key(doc) {
            Some(key) => marks::is_marked(at, ns, self.kind(), &key),
            None => Ok(false),
        }
    }

    fn arrive(&self, write: &mut Write<'_>, ns: &Namespace, doc: RawDoc<'_>) -> Result<Patch> {
        let key = self.link.own_key(doc);
        if let Some(key) = &key {
            gate::pass_beside(write, ns, key)?;
        }
        self.copied(write.tx, ns, key.as_ref())
    }

    fn changed(&self, write: &mut Write<'_>, ns: &Namespace, before: RawDoc<'_>, after: RawDoc<'_>) -> Result<Patch> {
        let (was, is) = (self.link.own_key(before), self.link.own_key(after));
        if was.as_ref().map(|key| &key.bytes) == is.as_ref().map(|key| &key.bytes) {
            return Ok(Patch::default());
        }
        if let Some(key) = &is {
            gate::pass_beside(write, ns, key)?;
        }
        self.copied(write.tx, ns, is.as_ref())
    }

    fn follow(&self, write: &mut Write<'_>, ns: &Namespace, changes: &[&Change]) -> Result<()> {
        for change in changes {
            let key = |doc: &Option<DocBuf>| doc.as_ref().and_then(|doc| self.link.key(doc.as_raw()));
            let (was, is) = (key(&change.before), key(&change.after));
            let same = was.as_ref().map(|key| &key.bytes) == is.as_ref().map(|key| &key.bytes);
            if let Some(was) = was.filter(|_| !same) {
                gate::pass_alone(write, ns, &was)?;
                self.gone(write, ns, &was)?;
            }
            if let Some(is) = is.filter(|_| self.mode == Mode::Follow) {
                gate::pass_alone(write, ns, &is)?;
                let patch = self.copy(write.tx, ns, Some(&is))?;
                self.fan_out(write, ns, &is, &patch)?;
            }
        }
        Ok(())
    }

    fn concerned(&self, key: &Key) -> Result<Option<Arc<Filter>>> {
        self.link.own_filter(key).map(Some)
    }

    fn source_key(&self, doc: RawDoc<'_>) -> Option<Key> {
        self.link.key(doc)
    }

    fn own_key(&self, doc: RawDoc<'_>) -> Option<Key> {
        self.link.own_key(doc)
    }

    fn health(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        let mut out = doc! { "from": self.source() };
        out.append("mode", if self.mode == Mode::Follow { "follow" } else { "snapshot" });
        out.append("pending", marks::count(at, ns, self.kind())? as i64);
        Ok(out)
    }
}

impl Reference {
    /// The copies that a document with this key is to have; if there is nothing to copy, those it has are left or go.
    fn copy(&self, at: &dyn Transaction, ns: &Namespace, key: Option<&Key>) -> Result<Patch> {
        let mut patch = Patch::default();
        match self.one(at, ns, key)? {
            Some(source) => {
                for (theirs, own) in &self.fields {
                    let value = value_at(source.as_raw(), theirs.parts());
                    patch.put(own.clone(), value.map(Value::own).unwrap_or_default());
                }
            }
            None if self.on_delete == OnDelete::Unset || key.is_none() => {
                self.owns.iter().for_each(|own| patch.put(own.clone(), Value::default()));
            }
            None => {}
        }
        Ok(patch)
    }

    /// As [`Reference::copy`], for a document that refers to something else than before: copies of that go.
    fn copied(&self, at: &dyn Transaction, ns: &Namespace, key: Option<&Key>) -> Result<Patch> {
        let mut patch = self.copy(at, ns, key)?;
        for own in &self.owns {
            if !patch.has(own) {
                patch.put(own.clone(), Value::default());
            }
        }
        Ok(patch)
    }

    /// The document that is referred to: of several with the key the one with the smallest `_id`.
    fn one(&self, at: &dyn Transaction, ns: &Namespace, key: Option<&Key>) -> Result<Option<DocBuf>> {
        let mut one: Option<DocBuf> = None;
        let Some(key) = key else { return Ok(None) };
        self.link.members(at, ns, key, None, |doc| {
            let smaller = |one: &DocBuf| espalier_value::compare(id_of(doc), id_of(one.as_raw())).is_lt();
            if one.as_ref().is_none_or(smaller) {
                one = Some(DocBuf::from_raw(doc));
            }
            Ok(true)
        })?;
        Ok(one)
    }

    /// The document with this key is not there any more, or has another key.
    fn gone(&self, write: &mut Write<'_>, ns: &Namespace, key: &Key) -> Result<()> {
        // Another one with the same key takes its place.
        if self.one(write.tx, ns, Some(key))?.is_some() {
            let patch = self.copy(write.tx, ns, Some(key))?;
            return if self.mode == Mode::Follow { self.fan_out(write, ns, key, &patch) } else { Ok(()) };
        }
        match self.on_delete {
            OnDelete::Keep => Ok(()),
            OnDelete::Unset => {
                let patch = self.copy(write.tx, ns, Some(key))?;
                self.fan_out(write, ns, key, &patch)
            }
            OnDelete::Cascade => self.cascade(write, ns, key),
            OnDelete::Restrict => match self.link.owners_up_to(write.tx, ns, key, 1)?.first() {
                None => Ok(()),
                Some(owner) => {
                    let message = format!(
                        "the document cannot be deleted, nor the field change that it is referred to by: the document of \
                         {ns} with _id {} refers to it (pattern 'reference' with onDelete: 'restrict')",
                        id_of(owner.as_raw())
                    );
                    Err(Error::new(Code::CommandNotSupported, message))
                }
            },
        }
    }

    fn cascade(&self, write: &mut Write<'_>, ns: &Namespace, key: &Key) -> Result<()> {
        let delete = Delete::new(Arc::new(Filter::empty()), write.context.clone());
        for owner in self.link.owners_up_to(write.tx, ns, key, self.in_commit + 1)? {
            write.context.interrupt.check()?;
            write.delete(ns, id_of(owner.as_raw()), &delete)?;
        }
        match self.link.owners_up_to(write.tx, ns, key, 1)?.is_empty() {
            true => Ok(()),
            false => Err(Error::new(
                Code::CommandNotSupported,
                format!(
                    "more than {} documents of {ns} refer to the document and would have to be deleted with it (pattern \
                     'reference' with onDelete: 'cascade'); delete them first, or raise inCommit",
                    self.in_commit
                ),
            )),
        }
    }
}
