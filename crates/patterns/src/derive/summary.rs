//! Derivations that sum up many documents of the source in the one they belong to.

use std::collections::BTreeMap;
use std::fmt::Debug;

use espalier_query::Context;
use espalier_store::{Change, Namespace, Transaction};
use espalier_value::{DocBuf, Path, RawDoc, Result, Value, doc};

use super::{Derivation, Key, Link, Patch, Reads, gate};
use crate::bson::id_of;
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

    /// The same, by what it has and by the documents that went and came as far as that tells. The source has changed
    /// already.
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

    fn expected(&self, at: &dyn Transaction, ns: &Namespace, doc: RawDoc<'_>) -> Result<Patch> {
        self.0.anew(at, ns, self.0.link().own_key(doc).as_ref(), &Context::default())
    }

    fn arrive(&self, write: &mut Write<'_>, ns: &Namespace, doc: RawDoc<'_>) -> Result<Patch> {
        let key = self.0.link().own_key(doc);
        if let Some(key) = &key {
            gate::pass(write.tx, ns, key)?;
        }
        self.0.anew(write.tx, ns, key.as_ref(), &write.context)
    }

    fn changed(&self, write: &mut Write<'_>, ns: &Namespace, before: RawDoc<'_>, after: RawDoc<'_>) -> Result<Patch> {
        let link = self.0.link();
        let (was, is) = (link.own_key(before), link.own_key(after));
        if was.as_ref().map(|key| &key.bytes) == is.as_ref().map(|key| &key.bytes) {
            return Ok(Patch::default());
        }
        if let Some(key) = &is {
            gate::pass(write.tx, ns, key)?;
        }
        self.0.anew(write.tx, ns, is.as_ref(), &write.context)
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
                gate::pass(write.tx, ns, &group.key)?;
            }
            for owner in owners {
                let context = write.context.clone();
                let moved = Moved { owner: owner.as_raw(), key: &group.key, gone: &group.gone, come: &group.come };
                let patch = self.0.adjusted(write.tx, ns, &moved, &context)?;
                if patch.differs(owner.as_raw()) {
                    write.patch(ns, id_of(owner.as_raw()), &patch)?;
                } else if plain {
                    write.touched.push((ns.clone(), Value::own(id_of(owner.as_raw()))));
                    stored::touch(write.tx, ns, owner)?;
                }
            }
        }
        Ok(())
    }

    fn turn(&self, ns: &Namespace, source: RawDoc<'_>) -> Option<Turn> {
        let key = self.0.link().key(source)?;
        self.0.link().id(&key).map(|id| (ns.clone(), Value::own(id)))
    }

    fn health(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        let sources = crate::read::count(at, &self.0.link().source(ns), &stored::everything())?;
        Ok(doc! { "from": self.source(), "freshness": "commit", "lagMillis": 0, "sourceDocuments": sources as i64 })
    }
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
