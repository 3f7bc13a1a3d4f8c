//! Opening: lock the folder, read the manifest, open the runs, replay the log, tidy up.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use crate::batch::{Malformed, Op, Ops};
use crate::cache::Cache;
use crate::compact;
use crate::disk::Disk;
use crate::engine::{Committer, Engine, Signals};
use crate::log::{self, Kept, KeptSegment, Log, Replayed, Segment, Start};
use crate::manifest::{MANIFEST_TEMP_NAME, Manifest};
use crate::memtable::{ChunkPool, Memtable, MemtableWriter};
use crate::options::Options;
use crate::past::Times;
use crate::poison::Poison;
use crate::run::{self, Graveyard, Level, Run, RunContext};
use crate::throttle::Throttle;
use crate::version::{Superversion, Version};
use crate::{KvError, Result};

/// What opening found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The folder was empty and is a new database now.
    pub is_new: bool,
    /// Commits that were in the log and not yet in runs.
    pub commits_replayed: u64,
    pub bytes_replayed: u64,
    /// Bytes at the log's end that were never synced and are incomplete; they were cut off.
    pub torn_tail_bytes: u64,
    /// Leftovers of flushes and compactions that were interrupted.
    pub orphan_files: u64,
    /// The last commit.
    pub seq: u64,
}

/// Segments that may be left for the next start to replay before everything is written to runs at once.
const SEGMENTS_REPLAYED_MAX: usize = 16;

pub(crate) fn open(disk: Arc<dyn Disk>, options: Options) -> Result<(Engine, Recovered)> {
    let folder = disk.path("");
    let lock = match disk.lock() {
        Ok(Some(lock)) => lock,
        Ok(None) => return Err(KvError::Locked { path: folder }),
        Err(error) => return Err(KvError::io(&folder, "lock", error)),
    };
    let mut recovered = Recovered::default();
    let manifest = match Manifest::load(&*disk)? {
        Some(manifest) => manifest,
        None => {
            recovered.is_new = true;
            create(&*disk)?
        }
    };
    let names = list(&*disk)?;
    let context =
        RunContext { cache: Arc::new(Cache::new(options.cache_bytes)), graveyard: Arc::new(Graveyard::default()) };
    let mut levels = Vec::new();
    for metas in &manifest.levels {
        let open = |meta| Run::open(&*disk, meta, &context).map(Arc::new);
        levels.push(metas.iter().map(open).collect::<Result<Vec<_>>>()?);
    }
    let mut past = Vec::new();
    for meta in &manifest.past {
        past.push(Level::new(vec![Arc::new(Run::open(&*disk, meta, &context)?)]));
    }
    let version = Version::new(levels, past);
    recovered.orphan_files = remove_orphans(&*disk, &names, &manifest)?;

    let mut ids: Vec<u64> =
        names.iter().filter_map(|name| log::segment_id(name)).filter(|&id| id >= manifest.first_segment).collect();
    ids.sort_unstable();
    let pool = Arc::new(ChunkPool::new(options.memtable_bytes));
    let mut tables = Tables {
        pool: pool.clone(),
        memtable_bytes: options.memtable_bytes,
        active: None,
        segment: 0,
        frozen: Vec::new(),
        next_id: 1,
        last_seq: manifest.flushed_seq,
        // What the log does not have any more.
        times: manifest.times.until(manifest.flushed_seq),
    };
    let replay = log::replay(&*disk, &ids, manifest.first_lsn, manifest.durable_lsn, |commit| tables.apply(&commit))?;
    recovered.commits_replayed = replay.commits;
    recovered.bytes_replayed = replay.bytes;
    recovered.torn_tail_bytes = replay.torn_bytes;
    recovered.seq = tables.last_seq;
    for id in &replay.discarded {
        remove(&*disk, &log::file_name(*id))?;
    }
    // Gone for good before a new segment continues from the cut.
    disk.sync_dir().map_err(|error| KvError::io(&folder, "sync", error))?;

    let highest = names.iter().filter_map(|name| file_id(name)).max();
    let segment_id = manifest.next_file_id.max(highest.map_or(0, |id| id + 1));
    let poison = Arc::new(Poison::default());
    let segment = Segment::create(&*disk, segment_id)?;
    let start = Start { lsn: replay.end_lsn, stamp: replay.stamp.max(manifest.stamp) };
    let kept = kept_segments(&*disk, &names, &manifest, &replay.segments, KeptSegment { id: segment_id, start })?;
    let log = Log::new(segment, start, poison.clone());
    let stamp = log.stamp();
    let last_seq = tables.last_seq;
    let mut times = std::mem::take(&mut tables.times);
    times.begin(stamp, last_seq);
    let (writer, frozen) = tables.finish(segment_id, replay.end_lsn);

    let mut dropped: BTreeMap<u64, u64> = manifest.dropped.iter().copied().collect();
    for table in frozen.iter().rev().chain([writer.table()]) {
        for (tree, seq) in table.drops() {
            dropped.entry(tree).or_insert(seq);
        }
    }
    let throttle = Throttle::new();
    throttle.set_depth(version.level0_depth());
    throttle.set_frozen(frozen.len());
    let engine = Engine {
        context,
        pool,
        poison,
        log,
        kept,
        throttle,
        current: RwLock::new(Arc::new(Superversion {
            active: writer.table().clone(),
            frozen,
            version: Arc::new(version),
            dropped: Arc::new(dropped),
            floor: manifest.floor,
        })),
        visible: AtomicU64::new(last_seq),
        visible_stamp: AtomicU64::new(stamp),
        times: Mutex::new(times),
        committer: Mutex::new(Committer { writer, last_seq }),
        next_file_id: AtomicU64::new(segment_id + 1),
        forgotten_seq: AtomicU64::new(manifest.forgotten_seq),
        manifest: Mutex::new(manifest),
        spare_segment: Mutex::new(None),
        flushing: Mutex::new(()),
        compacting: Mutex::new(compact::Memory::new(last_seq)),
        signals: Signals::default(),
        flushes: AtomicU64::new(0),
        compactions: AtomicU64::new(0),
        folder_lock: Mutex::new(Some(lock)),
        disk,
        options,
    };
    if !engine.state().frozen.is_empty() {
        engine.signals.wake_flush();
    }
    engine.signals.wake_compact();
    if replay.segments.len() > SEGMENTS_REPLAYED_MAX {
        // Every start begins a segment. Written to runs, the earlier ones are history, which has its bounds.
        engine.flush()?;
    }
    engine.remove_old_segments()?;
    Ok((engine, recovered))
}

/// The segments before recovery's that are whole history, recovery's own, and the one to go on with. What does not join up
/// is removed.
fn kept_segments(
    disk: &dyn Disk,
    names: &[String],
    manifest: &Manifest,
    replayed: &[(u64, Start)],
    current: KeptSegment,
) -> Result<Kept> {
    let mut old: Vec<u64> =
        names.iter().filter_map(|name| log::segment_id(name)).filter(|&id| id < manifest.first_segment).collect();
    old.sort_unstable();
    let next = replayed.first().map_or(current.start, |(_, start)| *start);
    let mut segments = log::chain(disk, &old, next)?;
    for &id in &old[..old.len() - segments.len()] {
        remove(disk, &log::file_name(id))?;
    }
    segments.extend(replayed.iter().map(|&(id, start)| KeptSegment { id, start }));
    segments.push_back(current);
    Ok(Kept::new(segments))
}

fn list(disk: &dyn Disk) -> Result<Vec<String>> {
    disk.list().map_err(|error| KvError::io(&disk.path(""), "list", error))
}

fn remove(disk: &dyn Disk, name: &str) -> Result<()> {
    disk.remove(name).map_err(|error| KvError::io(&disk.path(name), "remove", error))
}

fn file_id(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(run::RUN_SUFFIX);
    let run = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    run.or_else(|| log::segment_id(name))
}

/// A new database. The manifest comes before anything else, so a folder with other files of
/// ours and no manifest has lost it.
fn create(disk: &dyn Disk) -> Result<Manifest> {
    let names = list(disk)?;
    if let Some(name) = names.iter().find(|name| file_id(name).is_some()) {
        let what = format!("the manifest is missing, but {name} is there");
        return Err(KvError::corrupt(&disk.path(crate::manifest::MANIFEST_NAME), 0, what));
    }
    let manifest = Manifest { next_file_id: 1, first_segment: 1, ..Manifest::default() };
    manifest.store(disk)?;
    Ok(manifest)
}

/// Files that no manifest names: a flush or compaction was interrupted.
fn remove_orphans(disk: &dyn Disk, names: &[String], manifest: &Manifest) -> Result<u64> {
    let known: HashSet<u64> = manifest.levels.iter().flatten().chain(&manifest.past).map(|run| run.id).collect();
    let mut removed = 0;
    for name in names {
        let is_orphan = if name.ends_with(run::RUN_SUFFIX) {
            file_id(name).is_some_and(|id| !known.contains(&id))
        } else {
            name == MANIFEST_TEMP_NAME
        };
        if is_orphan {
            remove(disk, name)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Memtables being rebuilt from the log.
struct Tables {
    pool: Arc<ChunkPool>,
    memtable_bytes: usize,
    active: Option<MemtableWriter>,
    /// The segment that the active table was last fed from.
    segment: u64,
    /// Oldest first.
    frozen: Vec<Arc<Memtable>>,
    next_id: u64,
    last_seq: u64,
    times: Times,
}

impl Tables {
    fn apply(&mut self, commit: &Replayed<'_>) -> Result<(), Malformed> {
        // Only between segments: a flushed table frees whole segments.
        if commit.segment != self.segment
            && let Some(full) = self.active.take_if(|writer| writer.table().bytes() >= self.memtable_bytes)
        {
            self.frozen.push(full.table().clone());
        }
        self.segment = commit.segment;
        let writer = match &mut self.active {
            Some(writer) => writer,
            None => {
                let id = self.next_id;
                self.next_id += 1;
                self.active.insert(Memtable::create(&self.pool, id, commit.segment, commit.segment_lsn))
            }
        };
        for op in Ops::new(commit.payload) {
            match op? {
                Op::Put { key, value, .. } => drop(writer.insert(key, commit.seq, Some(value))),
                Op::Delete { key } => drop(writer.insert(key, commit.seq, None)),
                Op::DropTree { tree } => writer.drop_tree(tree, commit.seq),
            }
        }
        self.last_seq = commit.seq;
        self.times.note(commit.stamp, commit.seq);
        Ok(())
    }

    /// The table to go on with, and the full ones, newest first.
    fn finish(mut self, segment: u64, lsn: u64) -> (MemtableWriter, Vec<Arc<Memtable>>) {
        let writer = match self.active {
            Some(writer) => writer,
            None => Memtable::create(&self.pool, self.next_id, segment, lsn),
        };
        self.frozen.reverse();
        (writer, self.frozen)
    }
}

impl Engine {
    /// Lets another process have the folder.
    pub(crate) fn unlock(&self) {
        drop(crate::sync::lock(&self.folder_lock).take());
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }
}
