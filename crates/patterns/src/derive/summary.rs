//! Derivations that sum up many documents of the source in the one they belong to.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use espalier_query::{Context, Filter};
use espalier_store::{Change, Namespace, Transaction};
use espalier_value::{DocBuf, Path, RawDoc, Result, Value, ValueRef, doc};

use super::{Derivation, Happened, Key, Link, Patch, Reads, gate, marks};
use crate::bson::{id_of, value_at};
use crate::roles::Roles;
use crate::stored;
use crate::write::{Turn, Write};

/// What one is made of.
pub(crate) trait Summary: Debug + Send + Sync {
    fn kind(&self) -> &'static str;
    fn link(&self) -> &Link;
    fn reads(&self) -> &Reads;
    fn owns(&self) -> &[Path];
    /// What indexes of the source are to have behind the fields of the link, each field with whether it descends.
    fn behind(&self) -> Vec<Vec<(Path, bool)>>;

    /// What the document is to have, by all of the source's documents with its key; without a key there are none.
    fn anew(&self, at: &dyn Transaction, ns: &Namespace, key: Option<&Key>, context: &Context) -> Result<Patch>;

    /// How much later it may follow.
    fn within(&self) -> Option<Duration>;

    /// Where it is noted, if it may follow later, at what time it was computed anew.
    fn noted(&self) -> Option<&Path>;

    /// The same, by what it has and by the documents that went and came alone; `None` if that does not tell.
    fn told(&self, moved: &Moved<'_>, context: &Context) -> Result<Option<Patch>>;

    /// As [`Summary::told`], asking the source for what it does not tell. The source has changed already.
    fn adjusted(&self, at: &dyn Transaction, ns: &Namespace, moved: &Moved<'_>, context: &Context) -> Result<Patch>;
}

/// What happened to the documents of the source that belong to one document.
pub(crate) struct Moved<'c> {
    pub owner: RawDoc<'c>,
    pub key: &'c Key,
    pub gone: &'c [RawDoc<'c>],
    pub come: &'c [RawDoc<'c>],
}

/// Any of them as a derivation.
#[derive(Debug)]
pub(crate) struct Summed<S>(pub S);

impl<S: Summary> Derivation for Summed<S> {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn source(&self) -> &str {
        &self.0.link().from
    }

    fn reads(&self) -> &Reads {
        self.0.reads()
    }

    fn owns(&self) -> &[Path] {
        self.0.owns()
    }

    fn depends(&self) -> Vec<&str> {
        self.0.link().depends()
    }

    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        gate::prepare(tx, ns)?;
        let mut behind = self.0.behind();
        if behind.is_empty() {
            behind.push(Vec::new());
        }
        behind.iter().try_for_each(|behind| self.0.link().prepare(tx, ns, behind))
    }

    fn index_width(&self) -> usize {
        self.0.behind().iter().map(Vec::len).max().unwrap_or(0)
    }

    fn expected(&self, at: &dyn Transaction, ns: &Namespace, doc: RawDoc<'_>) -> Result<Patch> {
        self.0.anew(at, ns, self.0.link().own_key(doc).as_ref(), &Context::default())
    }

    fn arrive(&self, write: &mut Write<'_>, ns: &Namespace, doc: RawDoc<'_>) -> Result<Patch> {
        let key = self.0.link().own_key(doc);
        self.appeared(write, ns, key)
    }

    fn changed(&self, write: &mut Write<'_>, ns: &Namespace, before: RawDoc<'_>, after: RawDoc<'_>) -> Result<Patch> {
        let link = self.0.link();
        let (was, is) = (link.own_key(before), link.own_key(after));
        if was.as_ref().map(|key| &key.bytes) == is.as_ref().map(|key| &key.bytes) {
            return Ok(Patch::default());
        }
        self.appeared(write, ns, is)
    }

    fn follow(&self, write: &mut Write<'_>, ns: &Namespace, changes: &[&Change]) -> Result<()> {
        let link = self.0.link();
        let mut groups: BTreeMap<Vec<u8>, Group<'_>> = BTreeMap::new();
        for change in changes {
            for (doc, came) in [(&change.before, false), (&change.after, true)] {
                let Some(doc) = doc.as_ref().map(DocBuf::as_raw) else { continue };
                let Some(key) = link.key(doc) else { continue };
                let group = groups.entry(key.bytes.clone()).or_insert_with(|| Group::new(key));
                if came { group.come.push(doc) } else { group.gone.push(doc) }
            }
        }
        let plain = Roles::of(write.tx, ns)?.is_none_or(|roles| roles.layout.is_none());
        for group in groups.into_values() {
            let owners = link.owners(write.tx, ns, &group.key)?;
            // Who writes the one document there can be needs no gate beside it.
            if owners.is_empty() || !plain || !link.is_by_id() {
                gate::pass(write, ns, &group.key)?;
            }
            for owner in owners {
                let context = write.context.clone();
                let moved = Moved { owner: owner.as_raw(), key: &group.key, gone: &group.gone, come: &group.come };
                let patch = self.0.adjusted(write.tx, ns, &moved, &context)?;
                let id = id_of(owner.as_raw());
                if patch.differs(owner.as_raw()) {
                    write.patch_together(ns, id, patch)?;
                } else if plain && !write.will_patch(ns, id) {
                    write.touched.push((ns.clone(), Value::own(id_of(owner.as_raw()))));
                    stored::touch(write.tx, ns, owner)?;
                }
            }
        }
        Ok(())
    }

    fn within(&self) -> Option<Duration> {
        self.0.within()
    }

    fn source_key(&self, doc: RawDoc<'_>) -> Option<Key> {
        self.0.link().key(doc)
    }

    fn own_key(&self, doc: RawDoc<'_>) -> Option<Key> {
        self.0.link().own_key(doc)
    }

    fn concerned(&self, key: &Key) -> Result<Option<Arc<Filter>>> {
        self.0.link().own_filter(key).map(Some)
    }

    fn is_behind(&self, at: &dyn Transaction, ns: &Namespace, doc: RawDoc<'_>) -> Result<bool> {
        match self.0.link().own_key(doc).filter(|_| self.0.within().is_some()) {
            Some(key) => marks::is_marked(at, ns, self.kind(), &key),
            None => Ok(false),
        }
    }

    fn stamp(&self, patch: &mut Patch, time: u64) {
        if let Some(path) = self.0.noted() {
            patch.set(path.clone(), ValueRef::Timestamp(time));
        }
    }

    fn catch_up(&self, write: &mut Write<'_>, ns: &Namespace, happened: &[Happened], time: u64) -> Result<()> {
        let link = self.0.link();
        let mut groups: BTreeMap<Vec<u8>, (Key, Vec<Step<'_>>)> = BTreeMap::new();
        for one in happened.iter().filter(|one| super::matters(self, &one.change)) {
            for (doc, came) in [(&one.change.before, false), (&one.change.after, true)] {
                let Some(doc) = doc.as_ref().map(DocBuf::as_raw) else { continue };
                let Some(key) = link.key(doc) else { continue };
                let group = groups.entry(key.bytes.clone()).or_insert_with(|| (key, Vec::new()));
                group.1.push(Step { stamp: one.stamp, doc, came });
            }
        }
        for (key, steps) in groups.into_values() {
            for owner in link.owners(write.tx, ns, &key)? {
                let noted = self.0.noted().and_then(|path| value_at(owner.as_raw(), path.parts()));
                let known = if let Some(ValueRef::Timestamp(at)) = noted { at } else { 0 };
                let news = |came: bool| -> Vec<RawDoc<'_>> {
                    let new = |step: &&Step<'_>| step.stamp > known && step.came == came;
                    steps.iter().filter(new).map(|step| step.doc).collect()
                };
                let (gone, come) = (news(false), news(true));
                if gone.is_empty() && come.is_empty() {
                    continue;
                }
                let context = write.context.clone();
                let moved = Moved { owner: owner.as_raw(), key: &key, gone: &gone, come: &come };
                let patch = match self.0.told(&moved, &context)? {
                    Some(patch) => patch,
                    None => {
                        let mut patch = self.0.anew(write.tx, ns, Some(&key), &context)?;
                        self.stamp(&mut patch, time);
                        patch
                    }
                };
                if patch.differs(owner.as_raw()) {
                    write.patch(ns, id_of(owner.as_raw()), &patch)?;
                }
            }
        }
        Ok(())
    }

    fn turn(&self, ns: &Namespace, source: RawDoc<'_>) -> Option<Turn> {
        self.0.link().turn(ns, source)
    }

    fn health(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        let sources = crate::read::count(at, &self.0.link().source(ns), &stored::everything())?;
        let mut out = doc! { "from": self.source(), "sourceDocuments": sources as i64 };
        if self.0.within().is_some() {
            out.append("pending", marks::count(at, ns, self.kind())? as i64);
        }
        Ok(out)
    }
}

impl<S: Summary> Summed<S> {
    /// What a document has that was not there, or had another key.
    fn appeared(&self, write: &mut Write<'_>, ns: &Namespace, key: Option<Key>) -> Result<Patch> {
        if let (Some(key), Some(_)) = (&key, self.0.within()) {
            // It is computed soon, at a time that is known; until then it counts as having none.
            write.marked = true;
            marks::put(write.tx, ns, self.kind(), key, write.context.now_ms)?;
            return self.0.anew(write.tx, ns, None, &write.context);
        }
        if let Some(key) = &key {
            gate::pass(write, ns, key)?;
        }
        self.0.anew(write.tx, ns, key.as_ref(), &write.context)
    }
}

/// A document of the source that came or went at some time.
struct Step<'c> {
    stamp: u64,
    doc: RawDoc<'c>,
    came: bool,
}

/// Changes of the source that concern one key.
struct Group<'c> {
    key: Key,
    gone: Vec<RawDoc<'c>>,
    come: Vec<RawDoc<'c>>,
}

impl Group<'_> {
    fn new(key: Key) -> Self {
        Group { key, gone: Vec::new(), come: Vec::new() }
    }
}
