//! The engine as a whole: opening it, capturing snapshots with their catalog, committing.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use espalier_kv::{Batch, Commit, CommitError, Disk, Kv, MemDisk, Options, RealDisk};
use espalier_query::Context;
use espalier_query::stage::{Run, Spill};
use espalier_store::{
    Begin, CommitToken, DefaultCollation, Feed, Find, Namespace, Remembered, RememberedSession, SessionId, Store,
    Transaction, Watch,
};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

use crate::build::Builds;
use crate::catalog::persist;
use crate::catalog::{Catalog, Collection, Counts, Live};
use crate::error::kv;
use crate::history::EngineFeed;
use crate::layout::{self, record_at_end, tree_range};
use crate::locks::Locks;
use crate::past;
use crate::retry;
use crate::spill::TempFolder;
use crate::txn::{Delta, Deltas, Txn};
use crate::view::View;

/// How to open an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// `None`: in memory, for tests.
    pub folder: Option<PathBuf>,
    pub cache_bytes: usize,
    /// Bytes a sort may hold in memory.
    pub sort_bytes_max: usize,
    pub collections_max: usize,
    pub indexes_max: usize,
    /// Fields in the key of one index.
    pub index_fields_max: usize,
    /// Bytes of one index entry.
    pub index_key_bytes_max: usize,
    /// Bytes of the name of a database, and of `database.collection`.
    pub database_name_bytes_max: usize,
    pub namespace_bytes_max: usize,
    /// The largest document, in bytes.
    pub document_bytes_max: usize,
    /// Levels of nesting in a document.
    pub document_depth_max: usize,
    /// The most a transaction may have written.
    pub transaction_bytes_max: usize,
    /// How much of the past change streams can be resumed from, in bytes of log and in time, whichever ends first.
    pub history_bytes: u64,
    pub history_age: Duration,
    /// Reads can be at a time this long ago, as far as the versions that this takes fit into so many bytes.
    pub snapshot_age: Duration,
    pub snapshot_bytes: u64,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            folder: None,
            cache_bytes: 256 << 20,
            sort_bytes_max: 100 << 20,
            collections_max: 1_000,
            indexes_max: 64,
            index_fields_max: 32,
            index_key_bytes_max: 16 << 20,
            database_name_bytes_max: 63,
            namespace_bytes_max: 255,
            document_bytes_max: 16 << 20,
            document_depth_max: 100,
            transaction_bytes_max: 128 << 20,
            history_bytes: 1 << 30,
            history_age: Duration::from_secs(24 * 3600),
            snapshot_age: Duration::from_secs(300),
            snapshot_bytes: 1 << 30,
        }
    }
}

/// What was found when opening.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// Commits replayed from the log after an unclean end.
    pub commits: u64,
    pub torn_tail_bytes: u64,
    pub collections: usize,
    /// Index builds that had not ended; they were undone.
    pub unfinished_builds: Vec<String>,
}

/// The embedded engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    core: Arc<Core>,
}

pub(crate) struct Core {
    pub kv: Kv,
    pub options: EngineOptions,
    /// Swapped as a whole; written under `ddl`.
    catalog: RwLock<Arc<Catalog>>,
    /// The time of its last change, which is swapped with it.
    catalog_stamp: AtomicU64,
    /// One change of the catalog at a time.
    ddl: Mutex<()>,
    next_tree: AtomicU64,
    next_owner: AtomicU64,
    pub locks: Locks,
    pub builds: Builds,
    /// Where sorts go that do not fit into memory.
    pub spill: Option<Arc<dyn Spill>>,
    /// Raised by every insert into a capped collection, for cursors that wait for more.
    pub appended: Signal,
}

/// A counter one can wait on.
#[derive(Default)]
pub(crate) struct Signal {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Signal {
    pub fn raise(&self) {
        *lock(&self.count) += 1;
        self.changed.notify_all();
    }
}

/// Locks a mutex; a panic elsewhere leaves values that are still whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Engine {
    pub fn open(options: EngineOptions) -> Result<(Engine, Recovered)> {
        let kv_options = Options {
            cache_bytes: options.cache_bytes,
            history_bytes: options.history_bytes,
            history_age: options.history_age,
            past_age: options.snapshot_age,
            past_bytes: options.snapshot_bytes,
            past_less_trees: vec![layout::META, layout::RETRY],
            ..Options::default()
        };
        match &options.folder {
            Some(folder) => Engine::open_on(Arc::new(real_disk(folder)?), kv_options, options),
            None => Engine::open_on(Arc::new(MemDisk::new()), kv_options, options),
        }
    }

    /// Opens it on a disk other than a folder of this machine, such as one that loses its power.
    pub fn open_on(disk: Arc<dyn Disk>, kv_options: Options, options: EngineOptions) -> Result<(Engine, Recovered)> {
        let (store, replay) = Kv::open(disk, kv_options).map_err(kv)?;
        let spill = options.folder.as_deref().map(TempFolder::open).transpose()?;
        let core = Core {
            spill: spill.map(|folder| Arc::new(folder) as Arc<dyn Spill>),
            kv: store,
            options,
            catalog: RwLock::default(),
            catalog_stamp: AtomicU64::new(0),
            ddl: Mutex::new(()),
            next_tree: AtomicU64::new(layout::FIRST_TREE),
            next_owner: AtomicU64::new(1),
            locks: Locks::new(),
            builds: Builds::default(),
            appended: Signal::default(),
        };
        let mut recovered = Recovered {
            commits: replay.commits_replayed,
            torn_tail_bytes: replay.torn_tail_bytes,
            ..Recovered::default()
        };
        core.load(&mut recovered)?;
        Ok((Engine { core: Arc::new(core) }, recovered))
    }

    /// Ends background work and writes everything out.
    pub fn close(&self) -> Result<()> {
        self.core.builds.stop();
        self.core.kv.close().map_err(kv)
    }
}

impl Store for Engine {
    fn begin(&self, begin: Begin) -> Result<Box<dyn Transaction>> {
        Ok(Box::new(Txn::begin(self.core.clone(), begin)))
    }

    fn begin_at(&self, begin: Begin, time: Option<u64>) -> Result<(Box<dyn Transaction>, u64)> {
        let (time, view, catalog) = past::at(&self.core, time)?;
        Ok((Box::new(Txn::on(self.core.clone(), begin, view, catalog)), time))
    }

    fn time(&self) -> u64 {
        self.core.kv.stamp()
    }

    fn default_collation(&self, ns: &Namespace) -> DefaultCollation {
        let catalog = self.core.catalog.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(collection) = catalog.get(ns) else { return DefaultCollation::default() };
        let options = &collection.options;
        DefaultCollation { collation: options.collation.clone(), of_view: options.view.is_some() }
    }

    fn wait_durable(&self, commit: CommitToken) -> Result<()> {
        if commit == CommitToken::default() {
            return self.core.kv.wait_all_durable().map_err(kv);
        }
        self.core.kv.wait_durable(&Commit { seq: 0, lsn: commit.position, stamp: commit.stamp }).map_err(kv)
    }

    fn flush(&self) -> Result<()> {
        self.core.kv.flush().map_err(kv)
    }

    fn status(&self) -> DocBuf {
        crate::stats::status(&self.core)
    }

    fn spill(&self) -> Option<Arc<dyn Spill>> {
        self.core.spill.clone()
    }

    fn remembered(&self, session: &SessionId, txn_number: i64) -> Result<Vec<Remembered>> {
        retry::remembered(&self.core, session, txn_number)
    }

    fn remembered_sessions(&self) -> Result<Vec<RememberedSession>> {
        retry::sessions(&self.core)
    }

    fn forget(&self, session: &SessionId, from_statement: i32) -> Result<()> {
        retry::forget(&self.core, session, from_statement)
    }

    fn durable_time(&self) -> u64 {
        self.core.kv.durable_stamp()
    }

    fn changes(&self, watch: Watch) -> Result<Box<dyn Feed>> {
        Ok(Box::new(EngineFeed::open(&self.core.kv, watch)?))
    }

    fn on_change(&self, listener: Box<dyn Fn() + Send + Sync>) {
        self.core.kv.on_durable(listener);
    }

    fn jobs(&self) -> Vec<DocBuf> {
        self.core.builds.list()
    }

    fn settle(&self, ns: &Namespace, context: &Context) -> Result<()> {
        let (_, catalog) = self.core.capture();
        catalog.get(ns).map_or(Ok(()), |collection| collection.live.writers.settle(context))
    }
}

impl Core {
    /// A snapshot and the catalog that belongs to it.
    pub fn capture(&self) -> (View, Arc<Catalog>) {
        let catalog = self.catalog.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        (View::new(self.kv.snapshot()), catalog.clone())
    }

    /// The newest catalog, and when it came to be.
    pub fn dated_catalog(&self) -> (Arc<Catalog>, u64) {
        let catalog = self.catalog.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        (catalog.clone(), self.catalog_stamp.load(Ordering::Acquire))
    }

    /// What a sort of this find may use.
    pub fn sort_run(&self, find: &Find) -> Run {
        let mut run = Run::new(find.context.clone());
        run.limits.stage_memory_bytes_max = self.options.sort_bytes_max;
        run.spill = if find.allow_disk_use { self.spill.clone() } else { None };
        run
    }

    pub fn take_tree(&self) -> u64 {
        self.next_tree.fetch_add(1, Ordering::Relaxed)
    }

    /// A number for a transaction that claims what it writes.
    pub fn take_owner(&self) -> u64 {
        self.next_owner.fetch_add(1, Ordering::Relaxed)
    }

    /// Reads the catalog from the store; undoes index builds that had not ended.
    fn load(&self, recovered: &mut Recovered) -> Result<()> {
        let view = View::new(self.kv.snapshot());
        let (low, high) = tree_range(layout::CATALOG);
        let mut entries = view.scan(&low, &high, false)?;
        let mut catalog = Catalog::default();
        let mut undo = Batch::new();
        let mut greatest = layout::FIRST_TREE;
        while entries.next()? {
            let mut collection = persist::decode(RawDoc::trusted(entries.value()), |id| restore_live(&view, id))?;
            greatest = collection.indexes.iter().map(|i| i.id).fold(greatest.max(collection.id), u64::max);
            let unfinished: Vec<_> = collection.indexes.iter().filter(|i| i.building).cloned().collect();
            if !unfinished.is_empty() {
                collection.indexes.retain(|i| !i.building);
                for index in unfinished {
                    undo.drop_tree(index.id);
                    recovered.unfinished_builds.push(format!("{}.{}", collection.ns, index.spec.name));
                }
                undo.put(&collection.guard_key(), persist::encode(&collection).as_bytes());
            }
            catalog.put(Arc::new(collection));
        }
        if let Some(stored) = view.get(&layout::entry_key(layout::META, 0))? {
            let reserved = stored.first_chunk::<8>().map_or(0, |b| u64::from_be_bytes(*b));
            greatest = greatest.max(reserved);
        }
        if !undo.is_empty() {
            self.commit(&mut undo, None, &Deltas::new())?.ok_or_else(crate::error::write_conflict)?;
        }
        recovered.collections = catalog.len();
        self.next_tree.store(greatest + 1, Ordering::Relaxed);
        // When it last changed is not known.
        self.catalog_stamp.store(self.kv.stamp(), Ordering::Release);
        *self.catalog.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(catalog);
        Ok(())
    }

    /// Commits a batch with what it changes about collections; `None` on a conflict.
    pub fn commit(&self, batch: &mut Batch, read_at: Option<&View>, deltas: &Deltas) -> Result<Option<CommitToken>> {
        // In order of ids, so that two commits never wait for each other.
        let mut changed: Vec<&Delta> = deltas.values().filter(|delta| !delta.is_nothing()).collect();
        changed.sort_unstable_by_key(|delta| delta.collection.id);
        let mut guards = Vec::with_capacity(changed.len());
        let mut multikey = Vec::new();
        for delta in &changed {
            let held = lock(&delta.collection.live.counts);
            if delta.fresh > 0 {
                // Under the lock, so that record ids follow the order of commits: what is stored later lies behind all
                // that is stored already, and the storage engine never has to merge the two.
                batch.count_from(delta.collection.live.take_records(delta.fresh));
            }
            let after = held.plus(delta.counts);
            batch.put_new(&delta.collection.counts_key(), &after.to_bytes());
            if delta.multikey {
                // Under the lock, so that of two such commits the later one knows what the earlier one knew.
                multikey.extend(delta.collection.indexes.iter().map(|index| (index, index.multikey())));
                batch.put_new(&delta.collection.guard_key(), persist::encode(&delta.collection).as_bytes());
            }
            guards.push((held, after));
        }
        match self.kv.commit(&*batch, read_at.map(View::snapshot)) {
            Ok(commit) => {
                guards.iter_mut().for_each(|(held, after)| **held = *after);
                multikey.iter().for_each(|(index, bits)| index.stored_multikey(*bits));
                Ok(Some(CommitToken { position: commit.lsn, stamp: commit.stamp }))
            }
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(CommitError::Kv(error)) => Err(kv(error)),
        }
    }

    /// Changes the catalog: `change` gets the newest and puts what belongs to it into the batch.
    pub fn change_catalog<T>(
        &self,
        change: impl FnOnce(&mut Catalog, &mut Batch) -> Result<T>,
    ) -> Result<(T, CommitToken)> {
        let _one_at_a_time = lock(&self.ddl);
        let mut catalog = {
            let current = self.catalog.read().unwrap_or_else(|poisoned| poisoned.into_inner());
            Catalog::clone(&current)
        };
        let mut batch = Batch::new();
        let value = change(&mut catalog, &mut batch)?;
        if batch.is_empty() {
            return Ok((value, CommitToken::default()));
        }
        // Written once more under the lock that commits hold when they find an index to be multikey.
        let new: Vec<_> = catalog.iter().filter(|c| !self.is_current(c)).cloned().collect();
        let _held: Vec<_> = new.iter().map(|collection| lock(&collection.live.counts)).collect();
        new.iter().for_each(|collection| batch.put(&collection.guard_key(), persist::encode(collection).as_bytes()));
        // Tree ids are never used twice, also not after the collection that had the greatest is gone.
        batch.put(&layout::entry_key(layout::META, 0), &self.next_tree.load(Ordering::Relaxed).to_be_bytes());
        // Readers capture snapshot and catalog together, so both change while they are held off.
        let mut current = self.catalog.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let token = self.commit(&mut batch, None, &Deltas::new())?.ok_or_else(crate::error::write_conflict)?;
        self.catalog_stamp.store(token.stamp, Ordering::Release);
        *current = Arc::new(catalog);
        Ok((value, token))
    }
}

impl Core {
    /// Commits a transaction that creates collections. `false` for `None`: a name is taken, or a key has changed.
    pub fn commit_creating(
        &self,
        created: &[Arc<Collection>],
        batch: &mut Batch,
        read_at: &View,
        deltas: &Deltas,
    ) -> Result<Option<CommitToken>> {
        let _one_at_a_time = lock(&self.ddl);
        let mut catalog = {
            let current = self.catalog.read().unwrap_or_else(|poisoned| poisoned.into_inner());
            Catalog::clone(&current)
        };
        for collection in created {
            if catalog.get(&collection.ns).is_some() {
                return Ok(None);
            }
            batch.put_new(&collection.guard_key(), persist::encode(collection).as_bytes());
            catalog.put(collection.clone());
        }
        // Under the lock, so nobody else writes it.
        batch.put_new(&layout::entry_key(layout::META, 0), &self.next_tree.load(Ordering::Relaxed).to_be_bytes());
        let mut current = self.catalog.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        let token = self.commit(batch, Some(read_at), deltas)?;
        if let Some(token) = token {
            self.catalog_stamp.store(token.stamp, Ordering::Release);
            *current = Arc::new(catalog);
        }
        Ok(token)
    }

    /// True if what a layer has to do with a collection is not what it was in this catalog.
    pub fn layer_changed(&self, ns: &Namespace, seen: &Arc<Catalog>) -> bool {
        let current = self.catalog.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        if Arc::ptr_eq(&current, seen) {
            return false;
        }
        let layer = |catalog: &Catalog| catalog.layer(ns).cloned();
        match (layer(seen), layer(&current)) {
            (None, None) => false,
            (Some(seen), Some(now)) => !seen.is(&now),
            _ => true,
        }
    }

    /// True if this very version of the collection is the current one.
    fn is_current(&self, collection: &Arc<Collection>) -> bool {
        let current = self.catalog.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        current.get(&collection.ns).is_some_and(|now| Arc::ptr_eq(now, collection))
    }
}

fn restore_live(view: &View, id: u64) -> Result<Live> {
    let (low, high) = tree_range(id);
    let mut last = view.scan(&low, &high, true)?;
    let record = if last.next()? { Some(record_at_end(last.key())) } else { None };
    let counts = view.get(&layout::entry_key(layout::COUNTS, id))?.map(|bytes| Counts::from_bytes(&bytes));
    Ok(Live::restored(record, counts))
}

fn real_disk(folder: &std::path::Path) -> Result<RealDisk> {
    RealDisk::new(folder)
        .map_err(|e| Error::new(Code::InternalError, format!("cannot open the data folder {}: {e}", folder.display())))
}
