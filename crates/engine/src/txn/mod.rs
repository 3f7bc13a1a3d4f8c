//! A transaction: reads at one snapshot, collects writes, commits them as one batch.
//!
//! Outside a client's transaction (`Mode::Auto`) every document is its own commit: find it, lock it, look at it
//! again, write it. A conflict is answered by doing that again, so a client never sees one.

mod amend;
mod by_ids;
mod checks;
mod claims;
mod create;
mod ddl;
mod delete;
mod insert;
mod keys;
pub(crate) mod read;
mod target;
mod transaction;
mod untouched;
mod update;
pub(crate) mod write;

use std::cell::{Cell, Ref, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use espalier_kv::Snapshot;
use espalier_store::{Begin, Change, CommitToken, Happening, Mode, Namespace, TransactionId};
use espalier_value::{Code, Error, Result};

use crate::backoff::Backoff;
use crate::catalog::{Catalog, Collection, Counts, Writers, Writing};
use crate::core::Core;
use crate::error::{too_large, write_conflict};
use crate::history::Teller;
use crate::layout::RecordId;
use crate::locks::Lock;
use crate::view::View;
use claims::{Claims, Gate};
pub(crate) use ddl::put as ddl_put;
pub(crate) use keys::{check_keys, duplicate_key, id_of, index_keys};
use write::Writes;

pub(crate) struct Txn {
    core: Arc<Core>,
    begin: Begin,
    /// With own writes laid over it up to `shown`; see [`Txn::view`].
    view: RefCell<View>,
    shown: Cell<usize>,
    catalog: Arc<Catalog>,
    /// What a `Mode::Transaction` will commit.
    writes: Writes,
    /// A statement that failed has taken the transaction's writes with it: there is nothing left to commit.
    lost: bool,
    /// Collections that this transaction creates, by id.
    created: Vec<u64>,
    changes: Vec<Change>,
    last: CommitToken,
    /// Outside a transaction: something was committed that the view does not show.
    behind: bool,
    /// Writes are not told to change streams.
    silent: bool,
    /// Whose transaction this is.
    identity: Option<TransactionId>,
    backoff: Backoff,
}

impl Txn {
    pub fn begin(core: Arc<Core>, begin: Begin) -> Txn {
        let (view, catalog) = core.capture();
        Txn::on(core, begin, view, catalog)
    }

    /// At a snapshot that was taken before.
    pub fn on(core: Arc<Core>, begin: Begin, view: View, catalog: Arc<Catalog>) -> Txn {
        let mut writes = Writes::default();
        if begin.mode == Mode::Transaction {
            writes.gate = Gate::Claims(Claims::new(core.clone()));
        }
        let (changes, created, last) = (Vec::new(), Vec::new(), CommitToken::default());
        Txn {
            core,
            begin,
            view: RefCell::new(view),
            shown: Cell::new(0),
            catalog,
            writes,
            lost: false,
            created,
            changes,
            last,
            behind: false,
            silent: false,
            identity: None,
            backoff: Backoff::default(),
        }
    }

    /// What it sees, its own writes among it. Those are laid over the snapshot only when somebody looks: most transactions
    /// write last, and what nobody reads again need not be copied.
    fn view(&self) -> Ref<'_, View> {
        if self.writes.position() > self.shown.get() {
            self.view.borrow_mut().lay(self.writes.since(self.shown.get()));
            self.shown.set(self.writes.position());
        }
        self.view.borrow()
    }

    /// What it saw when it began.
    fn snapshot(&self) -> Ref<'_, Snapshot> {
        Ref::map(self.view.borrow(), View::snapshot)
    }

    fn is_auto(&self) -> bool {
        self.begin.mode == Mode::Auto
    }

    /// The newest state, for another try.
    fn refresh(&mut self) {
        // A transaction keeps its snapshot.
        if !self.is_auto() {
            return;
        }
        (*self.view.get_mut(), self.catalog) = self.core.capture();
        self.behind = false;
    }

    /// After a conflict outside a transaction: the newest state, and not before others have had their turn.
    fn again(&mut self) {
        if self.is_auto() {
            self.backoff.pause();
        }
        self.refresh();
    }

    /// How changes of the catalog are told.
    fn teller(&self) -> Teller {
        Teller { wall_ms: self.begin.context.now_ms, silent: self.silent }
    }

    /// A view is not to be taken for a collection.
    fn refuse_view(&self, ns: &Namespace) -> Result<()> {
        self.catalog.check(ns)?;
        match self.catalog.get(ns) {
            Some(collection) if collection.options.view.is_some() => Err(ddl::is_a_view(ns)),
            _ => Ok(()),
        }
    }

    /// As [`Txn::again`], with nothing done yet: if the name is now that of a collection with another layer, that must be
    /// asked first.
    fn again_from_the_start(&mut self, ns: &Namespace) -> Result<()> {
        let seen = self.catalog.clone();
        self.again();
        if self.is_auto() && !self.begin.raw && self.core.layer_changed(ns, &seen) {
            return Err(write_conflict());
        }
        Ok(())
    }

    /// Counts a write outside a transaction as under way; it sees what the writes before it have done. A transaction's
    /// own conflicts with a change of the collection when it commits. If a layer has come to the collection since this
    /// began, it must be asked first: that is a conflict before anything was done.
    fn writing(&mut self, ns: &Namespace) -> Result<Option<Writing>> {
        if !self.is_auto() {
            return Ok(None);
        }
        let seen = self.catalog.clone();
        if self.behind {
            self.refresh();
        }
        let writing = self.catalog.get(ns).map(|collection| Writers::begin(&collection.live));
        if !self.begin.raw && self.core.layer_changed(ns, &seen) {
            return Err(write_conflict());
        }
        Ok(writing)
    }

    /// The order of a capped collection is the order of commits, which a transaction does not know yet.
    fn refuse_capped(&self, ns: &Namespace) -> Result<()> {
        match self.catalog.get(ns) {
            Some(collection) if !self.is_auto() && collection.options.capped.is_some() => {
                let message = format!(
                    "Collection '{ns}' is a capped collection. Writes in transactions are not allowed on capped \
                     collections."
                );
                Err(Error::new(Code::OperationNotSupportedInTransaction, message))
            }
            _ => Ok(()),
        }
    }

    fn existing(&self, ns: &Namespace) -> Option<Arc<Collection>> {
        self.catalog.get(ns).cloned()
    }

    /// An empty batch for one commit outside a transaction, or the transaction's own.
    fn take_writes(&mut self) -> Writes {
        let mut writes = if self.is_auto() {
            let mut writes = Writes::new();
            let interrupt = self.begin.context.interrupt.clone();
            writes.gate = Gate::Plain { core: self.core.clone(), interrupt };
            writes
        } else {
            self.lost = true;
            std::mem::take(&mut self.writes).with_memory()
        };
        writes.want_changes = self.begin.want_changes;
        writes.is_read = !self.is_auto();
        writes.notes.silent = self.silent;
        writes.notes.wall_ms = self.begin.context.now_ms;
        if writes.notes.identity != self.identity {
            writes.notes.identity = self.identity.clone();
        }
        writes.key_bytes_max = self.core.options.index_key_bytes_max;
        writes
    }

    /// An event of a layer above, in a batch that is to be committed.
    fn tell(&self, writes: &mut Writes, event: &Happening) {
        let uuid = self.catalog.get(&event.ns).map(|collection| collection.uuid);
        writes.announce(event, uuid);
    }

    /// Gives a transaction's batch back; what was written is visible to it from now on.
    fn keep_writes(&mut self, writes: Writes) -> Result<()> {
        let (bytes, bytes_max) = (writes.len_bytes(), self.core.options.transaction_bytes_max);
        self.writes = writes;
        self.lost = false;
        if bytes > bytes_max { Err(too_large(bytes, bytes_max)) } else { Ok(()) }
    }

    /// Outside a transaction: waits for whoever else is writing the record.
    fn lock<'c>(&self, core: &'c Core, collection: &Collection, record: RecordId) -> Result<Option<Lock<'c>>> {
        match self.begin.mode {
            Mode::Auto => core.locks.lock((collection.id, record), &self.begin.context.interrupt).map(Some),
            Mode::Transaction => Ok(None),
        }
    }

    /// What this transaction itself has done to a collection's counts.
    fn own_counts(&self, collection: &Collection) -> Counts {
        self.writes.delta(collection.id)
    }

    /// After one document was written into `writes`: commits it, or keeps it in a transaction. False on a conflict.
    fn settle(&mut self, writes: Writes, written: Result<()>) -> Result<bool> {
        if !self.is_auto() {
            written?;
            self.keep_writes(writes)?;
            return Ok(true);
        }
        written?;
        self.commit_auto(writes)
    }

    /// Commits what was written for one document or one batch outside a transaction. False on a conflict.
    fn commit_auto(&mut self, writes: Writes) -> Result<bool> {
        if writes.is_empty() {
            return Ok(true);
        }
        let (mut batch, deltas, changes, _gate) = writes.into_parts();
        let committed = self.core.commit(&mut batch, Some(self.view.get_mut()), &deltas);
        write::recycle(batch);
        match committed? {
            Some(token) => {
                self.last = self.last.max(token);
                self.behind = true;
                if self.begin.want_changes {
                    self.changes.extend(changes);
                }
                if deltas.values().any(|delta| delta.collection.options.capped.is_some()) {
                    self.core.appended.raise();
                }
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

impl Txn {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn context(&self) -> Arc<espalier_query::Context> {
        self.begin.context.clone()
    }

    pub(crate) fn captured(&self) -> (Ref<'_, View>, &Catalog) {
        (self.view(), &self.catalog)
    }
}

/// What a batch changes about collections, by id.
pub(crate) type Deltas = HashMap<u64, Delta>;

pub(crate) struct Delta {
    pub collection: Arc<Collection>,
    pub counts: Counts,
    /// An index was found to be multikey, which the catalog entry does not say yet.
    pub multikey: bool,
    /// New documents whose record ids are given out by the commit.
    pub fresh: u64,
}

impl Delta {
    pub fn of(collection: Arc<Collection>) -> Delta {
        Delta { collection, counts: Counts::default(), multikey: false, fresh: 0 }
    }

    pub fn is_nothing(&self) -> bool {
        self.counts == Counts::default() && !self.multikey && self.fresh == 0
    }
}
