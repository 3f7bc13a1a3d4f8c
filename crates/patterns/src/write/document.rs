//! One logical document is written, with everything that patterns make of it, in one transaction of the store below: the
//! layout stores it, derivations declared on the collection add their fields, and derivations elsewhere that read the
//! collection follow.

use std::collections::HashSet;
use std::sync::Arc;

use espalier_query::Context;
use espalier_store::{Change, Delete, Insert, Inserted, Namespace, Transaction, Update, Want};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef};

use super::plain::{delete_plain, update_plain};
use super::{Turn, before_image, events, find_one, own, roles_to_write};
use crate::derive::Patch;
use crate::layout::{Layout, Move, Written};
use crate::roles::Roles;
use crate::stored;

/// Derivations that follow from one another end here at the latest. Cycles are refused when they are declared.
const DEPTH_MAX: usize = 32;

/// A transaction in which logical documents are written.
pub(crate) struct Write<'t> {
    pub tx: &'t mut dyn Transaction,
    pub context: Arc<Context>,
    /// Documents that patterns wrote to: whoever has to start over takes turns at them.
    pub touched: Vec<Turn>,
    /// Gates that it has passed.
    pub passed: HashSet<Vec<u8>>,
    /// Something is left to be done after the commit.
    pub marked: bool,
    /// How often it was begun before, and met others who wrote the same.
    pub attempt: usize,
    /// It sees everything up to this time and nothing after, if that is known.
    pub time: Option<u64>,
    depth: usize,
    /// What derivations write to documents from which nothing follows, to be written at once.
    later: Vec<(Turn, Patch)>,
    /// What clients changed, to be followed at once in the end.
    held_back: Option<Vec<Change>>,
}

/// Who writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    Client,
    /// What it writes is its own.
    Pattern,
}

impl<'t> Write<'t> {
    pub fn new(tx: &'t mut dyn Transaction, context: Arc<Context>) -> Write<'t> {
        Write {
            tx,
            context,
            touched: Vec::new(),
            passed: HashSet::new(),
            marked: false,
            attempt: 0,
            time: None,
            depth: 0,
            later: Vec::new(),
            held_back: None,
        }
    }

    /// Inserts documents; an error of one is reported with its position.
    pub fn insert(&mut self, ns: &Namespace, docs: &[RawDoc<'_>], how: &Insert) -> Result<Inserted> {
        let roles = roles_to_write(self.tx, ns)?.unwrap_or_default();
        if roles.derived.is_empty() {
            return self.insert_ready(ns, &roles, docs, how);
        }
        let (mut ready, mut places, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for (at, doc) in docs.iter().enumerate() {
            match self.arriving(ns, &roles, *doc) {
                Ok(doc) => {
                    ready.push(doc);
                    places.push(at);
                }
                Err(error) if own::is_of_document(&error) => {
                    refused.push((at, error));
                    if how.ordered {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let raw: Vec<RawDoc<'_>> = ready.iter().map(DocBuf::as_raw).collect();
        let mut done = self.insert_ready(ns, &roles, &raw, how)?;
        done.errors.iter_mut().for_each(|(at, _)| *at = places[*at]);
        if done.errors.is_empty() || !how.ordered {
            done.errors.extend(refused);
            done.errors.sort_by_key(|(at, _)| *at);
        }
        Ok(done)
    }

    /// The document with the fields that derivations keep in it.
    fn arriving(&mut self, ns: &Namespace, roles: &Roles, doc: RawDoc<'_>) -> Result<DocBuf> {
        let mut doc = DocBuf::from_raw(doc);
        for derivation in &roles.derived {
            let patch = derivation.arrive(self, ns, doc.as_raw())?;
            own::check_given(&**derivation, &patch, doc.as_raw())?;
            doc = patch.applied(doc.as_raw())?;
        }
        Ok(doc)
    }

    fn insert_ready(&mut self, ns: &Namespace, roles: &Roles, docs: &[RawDoc<'_>], how: &Insert) -> Result<Inserted> {
        let layout = roles.layout_to_write();
        let done = match &layout {
            Some((layout, false)) => layout.insert(self.tx, ns, docs, how)?,
            Some((layout, true)) => layout.insert_leaving(self.tx, ns, docs, how)?,
            None => self.aloud(|tx| tx.insert(ns, docs, how))?,
        };
        let mut changes = Vec::new();
        for at in inserted(&done, docs.len(), how) {
            if layout.is_some() {
                events::inserted(self.tx, ns, layout.as_ref(), docs[at])?;
            }
            if !roles.watchers.is_empty() {
                let after = match &layout {
                    Some((layout, false)) => layout.inserted(docs[at]),
                    _ => DocBuf::from_raw(docs[at]),
                };
                changes.push(Change { collection: ns.clone(), before: None, after: Some(after) });
            }
        }
        self.followed(ns, roles, changes)?;
        Ok(done)
    }

    /// Updates the document if it is there and the filter lets it through.
    pub fn update(&mut self, ns: &Namespace, id: ValueRef<'_>, update: &Update, by: By) -> Result<Option<Written>> {
        let roles = roles_to_write(self.tx, ns)?.unwrap_or_default();
        let layout = roles.layout_to_write();
        let concerned = !roles.derived.is_empty() || !roles.watchers.is_empty();
        let before = match concerned {
            true => find_one(self.tx, layout.as_ref().map(|(layout, _)| layout), ns, id, &update.context)?,
            false => before_image(self.tx, ns, layout.as_ref(), id, &update.context)?,
        };
        let kept = match (&before, by) {
            (Some(before), By::Client) => own::kept(&roles, update, before.as_raw())?,
            _ => None,
        };
        let update = kept.as_ref().unwrap_or(update);
        let told = before.clone().filter(|_| roles.pre_images);
        let Some(mut written) = self.store(ns, layout.as_ref(), id, update, told)? else { return Ok(None) };
        let (true, true, Some(before)) = (concerned, written.modified, before) else { return Ok(Some(written)) };
        let mut after = self.reread(ns, layout.as_ref(), id)?;
        if by == By::Client {
            own::check_same(&roles, before.as_raw(), after.as_raw())?;
        }
        for derivation in &roles.derived {
            let patch = derivation.changed(self, ns, before.as_raw(), after.as_raw())?;
            if patch.differs(after.as_raw()) {
                let own = patch.update(&self.context)?;
                let told = Some(after).filter(|_| roles.pre_images);
                self.store(ns, layout.as_ref(), id, &own, told)?;
                after = self.reread(ns, layout.as_ref(), id)?;
            }
        }
        if update.want == Want::After {
            written.image = Some(after.clone());
        }
        self.followed(ns, &roles, vec![Change { collection: ns.clone(), before: Some(before), after: Some(after) }])?;
        Ok(Some(written))
    }

    /// Deletes the document if it is there and the filter lets it through.
    pub fn delete(&mut self, ns: &Namespace, id: ValueRef<'_>, delete: &Delete) -> Result<Option<Written>> {
        let roles = roles_to_write(self.tx, ns)?.unwrap_or_default();
        let layout = roles.layout_to_write();
        let before = match roles.watchers.is_empty() {
            true => before_image(self.tx, ns, layout.as_ref(), id, &delete.context)?,
            false => find_one(self.tx, layout.as_ref().map(|(layout, _)| layout), ns, id, &delete.context)?,
        };
        let written = match &layout {
            Some((layout, _)) => layout.delete_one(self.tx, ns, id, delete)?,
            None => self.aloud(|tx| delete_plain(tx, ns, id, delete))?,
        };
        let Some(written) = written else { return Ok(None) };
        if layout.is_some() {
            events::deleted(self.tx, ns, id, before.clone().filter(|_| roles.pre_images))?;
        }
        self.followed(ns, &roles, vec![Change { collection: ns.clone(), before, after: None }])?;
        Ok(Some(written))
    }

    /// A pattern's own write to a document; false if the document is not there or has these values already.
    pub fn patch(&mut self, ns: &Namespace, id: ValueRef<'_>, patch: &Patch) -> Result<bool> {
        self.touched.push((ns.clone(), Value::own(id)));
        let update = patch.update(&self.context)?;
        let roles = roles_to_write(self.tx, ns)?.unwrap_or_default();
        let written = match roles.ends_with(patch) {
            // What it was before and is after it is of no concern to anybody.
            true => self.aloud(|tx| update_plain(tx, ns, id, &update))?,
            false => self.update(ns, id, &update, By::Pattern)?,
        };
        Ok(written.is_some_and(|written| written.modified))
    }

    /// As [`Write::patch`] for one of several derivations on a collection, each with fields of its own: what they write to
    /// one document is one write, and one event.
    pub fn patch_together(&mut self, ns: &Namespace, id: ValueRef<'_>, patch: Patch) -> Result<()> {
        let alone = roles_to_write(self.tx, ns)?.is_none_or(|roles| roles.ends_with(&patch));
        if !alone || self.depth == 0 {
            return self.patch(ns, id, &patch).map(drop);
        }
        match self.later.iter_mut().find(|(turn, _)| is_of(turn, ns, id)) {
            Some((_, earlier)) => earlier.join(patch),
            None => self.later.push(((ns.clone(), Value::own(id)), patch)),
        }
        Ok(())
    }

    /// Whether something is going to be written to a document.
    pub fn will_patch(&self, ns: &Namespace, id: ValueRef<'_>) -> bool {
        self.later.iter().any(|(turn, _)| is_of(turn, ns, id))
    }

    fn patch_now(&mut self) -> Result<()> {
        for ((ns, id), patch) in std::mem::take(&mut self.later) {
            self.patch(&ns, id.or_null(), &patch)?;
        }
        Ok(())
    }

    /// Stores an update, whatever the layout, and tells change streams.
    fn store(
        &mut self,
        ns: &Namespace,
        layout: Option<&(Arc<dyn Layout>, bool)>,
        id: ValueRef<'_>,
        update: &Update,
        before: Option<DocBuf>,
    ) -> Result<Option<Written>> {
        match layout {
            Some((layout, false)) => {
                let written = layout.update_one(self.tx, ns, id, update)?;
                if let Some(written) = written.as_ref().filter(|written| written.modified) {
                    let whole = Roles::of(self.tx, ns)?.is_some_and(|roles| roles.pre_images);
                    let after = whole.then(|| find_one(self.tx, Some(layout), ns, id, &update.context)).transpose()?;
                    events::updated(self.tx, ns, layout, id, (before, after.flatten()), written, &update.context)?;
                }
                Ok(written)
            }
            leaving => {
                if let Some((layout, true)) = leaving {
                    layout.migrate(self.tx, ns, Move::out(id), &update.context)?;
                }
                self.aloud(|tx| update_plain(tx, ns, id, update))
            }
        }
    }

    /// A write that is what it looks like: the store itself tells change streams.
    pub fn aloud<T>(&mut self, write: impl FnOnce(&mut dyn Transaction) -> Result<T>) -> Result<T> {
        self.tx.set_silent(false);
        let done = write(self.tx);
        self.tx.set_silent(true);
        done
    }

    fn reread(&self, ns: &Namespace, layout: Option<&(Arc<dyn Layout>, bool)>, id: ValueRef<'_>) -> Result<DocBuf> {
        let after = find_one(self.tx, layout.map(|(layout, _)| layout), ns, id, &self.context)?;
        after.ok_or_else(|| Error::internal(format!("a document of {ns} that was just written is gone")))
    }

    /// From now on derivations do not follow what clients change, until [`Write::follow_held_back`].
    pub fn hold_back(&mut self) {
        self.held_back = Some(Vec::new());
    }

    /// Lets derivations follow everything that was held back, which is of one collection.
    pub fn follow_held_back(&mut self, ns: &Namespace) -> Result<()> {
        let changes = self.held_back.take().unwrap_or_default();
        let roles = if changes.is_empty() { None } else { roles_to_write(self.tx, ns)? };
        roles.map_or(Ok(()), |roles| self.follow(ns, &roles, &changes))
    }

    fn followed(&mut self, ns: &Namespace, roles: &Roles, changes: Vec<Change>) -> Result<()> {
        match &mut self.held_back {
            Some(held) if !roles.watchers.is_empty() => held.extend(changes),
            Some(_) => {}
            None => self.follow(ns, roles, &changes)?,
        }
        Ok(())
    }

    /// Lets the derivations that read this collection follow.
    pub(super) fn follow(&mut self, ns: &Namespace, roles: &Roles, changes: &[Change]) -> Result<()> {
        if roles.watchers.is_empty() || changes.is_empty() {
            return Ok(());
        }
        if self.depth >= DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} patterns follow from one another, the last on {ns}");
            return Err(Error::new(Code::CommandNotSupported, message));
        }
        self.depth += 1;
        for watcher in &roles.watchers {
            let target = Namespace::new(ns.db(), watcher);
            let Some(theirs) = Roles::of(self.tx, &target)? else { continue };
            for derivation in
                theirs.derived.iter().filter(|one| one.within().is_none() && one.source() == ns.collection())
            {
                let matter: Vec<&Change> =
                    changes.iter().filter(|change| crate::derive::matters(&**derivation, change)).collect();
                if !matter.is_empty() {
                    derivation.follow(self, &target, &matter)?;
                }
            }
            self.patch_now()?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// The stored document with this `_id`, as it is read.
    pub fn get(&self, ns: &Namespace, id: ValueRef<'_>) -> Result<Option<DocBuf>> {
        crate::read::first(self.tx, ns, &stored::query(stored::by_id(id)?))
    }
}

fn is_of(turn: &Turn, ns: &Namespace, id: ValueRef<'_>) -> bool {
    turn.0 == *ns && espalier_value::compare(turn.1.or_null(), id).is_eq()
}

/// The positions of the documents that were inserted.
fn inserted(done: &Inserted, count: usize, how: &Insert) -> Vec<usize> {
    let failed = |at: usize| done.errors.iter().any(|(failed, _)| *failed == at);
    let tried = if how.ordered { done.errors.first().map_or(count, |(at, _)| *at) } else { count };
    if done.errors.is_empty() { (0..count).collect() } else { (0..tried).filter(|at| !failed(*at)).collect() }
}
