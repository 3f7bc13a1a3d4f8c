//! Appending to the log, and sharing one sync among all who wait for it.
//!
//! Records gather in a buffer. Whoever needs them on disk first becomes the leader: it writes
//! the whole buffer and syncs once, while the others wait and new records gather for the next
//! leader. A sealed segment is always written and synced before the one after it, so what is
//! durable is a prefix of the commits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use super::record::{Header, RECORD_HEADER_BYTES};
use super::segment::{Segment, encode_start};
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
    written_lsn: u64,
    durable_lsn: u64,
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
}

impl Log {
    /// Starts a segment at `base_lsn`; everything before it is durable.
    pub(crate) fn new(segment: Segment, base_lsn: u64, poison: Arc<Poison>) -> Log {
        Log {
            state: Mutex::new(State {
                pending: encode_start(segment.salt, base_lsn).to_vec(),
                current: Arc::new(segment),
                sealed: Vec::new(),
                end_lsn: base_lsn,
                commit_lsn: base_lsn,
                written_lsn: base_lsn,
                durable_lsn: base_lsn,
                noted_lsn: base_lsn,
                is_busy: false,
                is_ticker_idle: false,
                is_closed: false,
                spare: Vec::new(),
            }),
            done: Condvar::new(),
            work: Condvar::new(),
            poison,
            syncs: AtomicU64::new(0),
        }
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

    /// Adds a commit and returns the position after it. Called in commit order.
    pub(crate) fn append(&self, seq: u64, payload: &[u8], payload_crc: u32) -> Result<u64> {
        let payload_len = u32::try_from(payload.len()).map_err(|_| KvError::TooLarge {
            what: "a batch",
            bytes: payload.len(),
            bytes_max: u32::MAX as usize,
        })?;
        let mut state = lock(&self.state);
        if state.is_closed {
            return Err(KvError::Closed);
        }
        let header = Header { payload_len, seq, durable_lsn: state.durable_lsn, payload_crc };
        state.push(&header, payload);
        state.commit_lsn = state.end_lsn;
        let end = state.end_lsn;
        if state.is_ticker_idle {
            state.is_ticker_idle = false;
            self.work.notify_one();
        }
        Ok(end)
    }

    /// Following commits go to `next`; returns where it starts.
    pub(crate) fn rotate(&self, next: Segment) -> u64 {
        let mut state = lock(&self.state);
        let base_lsn = state.end_lsn;
        let start = encode_start(next.salt, base_lsn).to_vec();
        let pending = std::mem::replace(&mut state.pending, start);
        let old = std::mem::replace(&mut state.current, Arc::new(next));
        state.sealed.push((old, pending));
        base_lsn
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
        let end_lsn = state.end_lsn;
        drop(state);

        let result = self.write_all(&sealed, &current, &pending, sync);

        let mut state = lock(&self.state);
        state.is_busy = false;
        match &result {
            Ok(()) => {
                state.written_lsn = end_lsn;
                if sync {
                    state.durable_lsn = end_lsn;
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
    fn push(&mut self, header: &Header, payload: &[u8]) {
        self.pending.reserve(RECORD_HEADER_BYTES + payload.len());
        self.pending.extend_from_slice(&header.encode(self.current.salt));
        self.pending.extend_from_slice(payload);
        self.end_lsn += (RECORD_HEADER_BYTES + payload.len()) as u64;
        self.noted_lsn = header.durable_lsn;
    }

    /// A record without a commit that says how far the log is durable.
    fn push_marker(&mut self) {
        let header =
            Header { payload_len: 0, seq: 0, durable_lsn: self.durable_lsn, payload_crc: crc32fast::hash(&[]) };
        self.push(&header, &[]);
    }

    fn pending_bytes(&self) -> usize {
        self.pending.len() + self.sealed.iter().map(|(_, b)| b.len()).sum::<usize>()
    }
}
