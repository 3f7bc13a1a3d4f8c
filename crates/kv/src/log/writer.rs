//! Appending to the log, and sharing one sync among all who wait for it.
//!
//! Records gather in a buffer. Whoever needs them on disk first becomes the leader: it writes
//! the whole buffer and syncs once, while the others wait and new records gather for the next
//! leader. A sealed segment is always written and synced before the one after it, so what is
//! durable is a prefix of the commits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::record::{Header, RECORD_HEADER_BYTES};
use super::segment::{Segment, Start, encode_start};
use crate::options::{LOG_PENDING_BYTES_MAX, LOG_SYNC_EVERY, LOG_WRITE_BYTES, LOG_WRITE_EVERY};
use crate::poison::Poison;
use crate::sync::{lock, wait, wait_for};
use crate::{KvError, Result};

struct State {
    current: Arc<Segment>,
    /// Bytes for `current` that are not yet in its file.
    pending: Vec<u8>,
    /// Older segments with their unwritten bytes, oldest first; written ones wait for a sync.
    sealed: Vec<(Arc<Segment>, Vec<u8>)>,
    /// End of everything appended.
    end_lsn: u64,
    /// End of the last commit (markers need not be synced).
    commit_lsn: u64,
    /// The last commit's stamp.
    stamp: u64,
    written_lsn: u64,
    durable_lsn: u64,
    /// Every commit up to this stamp is durable.
    durable_stamp: u64,
    /// The durable position that the last record carries.
    noted_lsn: u64,
    is_busy: bool,
    is_ticker_idle: bool,
    is_closed: bool,
    /// An empty buffer to swap in.
    spare: Vec<u8>,
}

pub(crate) struct Log {
    state: Mutex<State>,
    /// Signals the end of a write or sync.
    done: Condvar,
    /// Wakes the ticker.
    work: Condvar,
    poison: Arc<Poison>,
    syncs: AtomicU64,
    /// Told when commits have become durable.
    listener: Mutex<Option<Listener>>,
}

pub(crate) type Listener = Arc<dyn Fn() + Send + Sync>;

/// A commit's place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where it ends.
    pub(crate) lsn: u64,
    pub(crate) stamp: u64,
}

/// How far the log is safe from a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Durable {
    pub(crate) lsn: u64,
    pub(crate) stamp: u64,
}

impl Log {
    /// Starts a segment; everything before it is durable.
    pub(crate) fn new(segment: Segment, start: Start, poison: Arc<Poison>) -> Log {
        // Whoever asks for the time before the first commit is told one that no later commit has.
        let stamp = start.stamp.max(stamp_now());
        Log {
            state: Mutex::new(State {
                pending: encode_start(segment.salt, start).to_vec(),
                current: Arc::new(segment),
                sealed: Vec::new(),
                end_lsn: start.lsn,
                commit_lsn: start.lsn,
                stamp,
                written_lsn: start.lsn,
                durable_lsn: start.lsn,
                durable_stamp: stamp,
                noted_lsn: start.lsn,
                is_busy: false,
                is_ticker_idle: false,
                is_closed: false,
                spare: Vec::new(),
            }),
            done: Condvar::new(),
            work: Condvar::new(),
            poison,
            syncs: AtomicU64::new(0),
            listener: Mutex::default(),
        }
    }

    /// `listener` is called after commits have become durable, on the thread that made them so: it must be quick.
    /// It takes the place of the one before.
    pub(crate) fn listen(&self, listener: Listener) {
        *lock(&self.listener) = Some(listener);
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Where the last commit ends: a commit is in the log before anybody sees it.
    pub(crate) fn commit_lsn(&self) -> u64 {
        lock(&self.state).commit_lsn
    }

    pub(crate) fn durable_lsn(&self) -> u64 {
        lock(&self.state).durable_lsn
    }

    /// How far commits are durable, with the stamp that belongs to it.
    pub(crate) fn durable(&self) -> Durable {
        let state = lock(&self.state);
        Durable { lsn: state.durable_lsn, stamp: state.durable_stamp }
    }

    /// The last commit's stamp.
    pub(crate) fn stamp(&self) -> u64 {
        lock(&self.state).stamp
    }

    /// Adds a commit, stamps it, and says where it is. Called in commit order.
    pub(crate) fn append(&self, seq: u64, ops: &[u8], annotation: &[u8], payload_crc: u32) -> Result<Place> {
        let bytes = ops.len() + annotation.len();
        let too_large = || KvError::TooLarge { what: "a batch", bytes, bytes_max: u32::MAX as usize };
        let payload_len = u32::try_from(bytes).map_err(|_| too_large())?;
        let annotation_len = u32::try_from(annotation.len()).map_err(|_| too_large())?;
        let now = stamp_now();
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(KvError::Closed);
        }
        let stamp = now.max(state.stamp + 1);
        state.stamp = stamp;
        let header = Header { payload_len, seq, durable_lsn: state.durable_lsn, stamp, annotation_len, payload_crc };
        state.push(&header, ops, annotation);
        state.commit_lsn = state.end_lsn;
        let lsn = state.end_lsn;
        if state.is_ticker_idle {
            state.is_ticker_idle = false;
            self.work.notify_one();
        }
        Ok(Place { lsn, stamp })
    }

    /// Following commits go to `next`; returns where it starts.
    pub(crate) fn rotate(&self, next: Segment) -> Start {
        let mut state = lock(&self.state);
        let start = Start { lsn: state.end_lsn, stamp: state.stamp };
        let bytes = encode_start(next.salt, start).to_vec();
        let pending = std::mem::replace(&mut state.pending, bytes);
        let old = std::mem::replace(&mut state.current, Arc::new(next));
        state.sealed.push((old, pending));
        start
    }

    /// Called after a commit that nobody waits for: hands a full buffer to the operating
    /// system, and waits if the disk does not keep up.
    pub(crate) fn relieve(&self) -> Result<()> {
        let mut state = lock(&self.state);
        loop {
            self.poison.check()?;
            let waiting = state.pending_bytes();
            if !state.is_busy && waiting >= LOG_WRITE_BYTES {
                return self.write(state, false).1;
            }
            if waiting < LOG_PENDING_BYTES_MAX {
                return Ok(());
            }
            state = wait(&self.done, state);
        }
    }

    /// Returns when the log is durable up to `lsn`.
    pub(crate) fn wait_durable(&self, lsn: u64) -> Result<()> {
        let mut state = lock(&self.state);
        while state.durable_lsn < lsn {
            self.poison.check()?;
            if state.is_busy {
                state = wait(&self.done, state);
            } else {
                let result;
                (state, result) = self.write(state, true);
                result?;
            }
        }
        Ok(())
    }

    /// Writes out everything gathered so far, in order, and syncs it if asked.
    fn write<'a>(&'a self, mut state: MutexGuard<'a, State>, sync: bool) -> (MutexGuard<'a, State>, Result<()>) {
        state.is_busy = true;
        let sealed = std::mem::take(&mut state.sealed);
        let spare = std::mem::take(&mut state.spare);
        let pending = std::mem::replace(&mut state.pending, spare);
        let current = state.current.clone();
        let (end_lsn, stamp) = (state.end_lsn, state.stamp);
        drop(state);

        let result = self.write_all(&sealed, &current, &pending, sync);

        let mut state = lock(&self.state);
        state.is_busy = false;
        let mut is_grown = false;
        match &result {
            Ok(()) => {
                state.written_lsn = end_lsn;
                if sync {
                    is_grown = state.durable_stamp < stamp;
                    state.durable_lsn = end_lsn;
                    state.durable_stamp = stamp;
                } else {
                    // Written, but still to be synced before anything after them.
                    let unsynced = sealed.into_iter().map(|(segment, _)| (segment, Vec::new()));
                    state.sealed.splice(0..0, unsynced);
                }
                let mut buffer = pending;
                buffer.clear();
                if buffer.capacity() <= LOG_PENDING_BYTES_MAX {
                    state.spare = buffer;
                }
            }
            Err(error) => self.poison.set(error),
        }
        self.done.notify_all();
        if is_grown {
            drop(state);
            let listener = lock(&self.listener).clone();
            if let Some(listener) = listener {
                listener();
            }
            state = lock(&self.state);
        }
        (state, result)
    }

    fn write_all(
        &self,
        sealed: &[(Arc<Segment>, Vec<u8>)],
        current: &Segment,
        pending: &[u8],
        sync: bool,
    ) -> Result<()> {
        for (segment, bytes) in sealed {
            if !bytes.is_empty() {
                segment.append(bytes)?;
            }
            if sync {
                self.syncs.fetch_add(1, Ordering::Relaxed);
                segment.sync()?;
                segment.set_cold();
            }
        }
        if !pending.is_empty() {
            current.append(pending)?;
        }
        if sync {
            self.syncs.fetch_add(1, Ordering::Relaxed);
            current.sync()?;
        }
        Ok(())
    }

    /// The background's part: what nobody waits for still reaches the operating system and the
    /// disk soon. Returns when the log is closed.
    pub(crate) fn run_ticker(&self) {
        let mut last_sync = Instant::now();
        let mut state = lock(&self.state);
        while !state.is_closed && !self.poison.is_set() {
            if state.is_busy {
                state = wait(&self.done, state);
                continue;
            }
            let sync = state.durable_lsn < state.commit_lsn && last_sync.elapsed() >= LOG_SYNC_EVERY;
            if sync {
                // A failure is kept in the poison, where the next commit finds it.
                state = self.write(state, true).0;
                last_sync = Instant::now();
            } else if state.written_lsn < state.end_lsn {
                state = self.write(state, false).0;
            }
            if state.durable_lsn >= state.commit_lsn && state.noted_lsn < state.commit_lsn {
                state.push_marker();
                continue;
            }
            let is_idle = state.durable_lsn >= state.commit_lsn && state.written_lsn >= state.end_lsn;
            if is_idle {
                state.is_ticker_idle = true;
                while state.is_ticker_idle && !state.is_closed {
                    state = wait(&self.work, state);
                }
                last_sync = Instant::now();
            }
            if !state.is_closed {
                state = wait_for(&self.work, state, LOG_WRITE_EVERY);
            }
        }
    }

    /// After the poison was set by someone else: nobody should wait in vain.
    pub(crate) fn wake_waiters(&self) {
        let _state = lock(&self.state);
        self.done.notify_all();
        self.work.notify_all();
    }

    /// No more commits; what was committed is made durable.
    pub(crate) fn close(&self) -> Result<()> {
        let mut state = lock(&self.state);
        state.is_closed = true;
        self.work.notify_all();
        // A writer that died of a bug stays busy for ever, but has set the poison.
        while state.is_busy && !self.poison.is_set() {
            state = wait(&self.done, state);
        }
        self.poison.check()?;
        let (mut state, result) = self.write(state, true);
        result?;
        // So that the next start can tell a damaged last record from a torn one.
        if state.noted_lsn < state.commit_lsn {
            state.push_marker();
            return self.write(state, true).1;
        }
        Ok(())
    }
}

impl State {
    fn push(&mut self, header: &Header, ops: &[u8], annotation: &[u8]) {
        let bytes = RECORD_HEADER_BYTES + ops.len() + annotation.len();
        self.pending.reserve(bytes);
        self.pending.extend_from_slice(&header.encode(self.current.salt));
        self.pending.extend_from_slice(ops);
        self.pending.extend_from_slice(annotation);
        self.end_lsn += bytes as u64;
        self.noted_lsn = header.durable_lsn;
    }

    /// A record without a commit that says how far the log is durable.
    fn push_marker(&mut self) {
        let header = Header {
            payload_len: 0,
            seq: 0,
            durable_lsn: self.durable_lsn,
            stamp: 0,
            annotation_len: 0,
            payload_crc: crc32fast::hash(&[]),
        };
        self.push(&header, &[], &[]);
    }

    fn pending_bytes(&self) -> usize {
        self.pending.len() + self.sealed.iter().map(|(_, b)| b.len()).sum::<usize>()
    }
}

/// The first stamp of the present second.
fn stamp_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs() & u64::from(u32::MAX)) << 32 | 1
}
