//! The server's clocks: wall time, and the time of writes that drivers order them by (`operationTime`, `$clusterTime`).
//! The latter is the store's: a commit's stamp, so that a change stream started at a reply's `operationTime` misses nothing
//! that came after that reply.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use espalier_store::Store;

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub struct Clock {
    store: Arc<dyn Store>,
    started: Instant,
    started_ms: i64,
}

impl Clock {
    pub fn new(store: Arc<dyn Store>) -> Clock {
        Clock { store, started: Instant::now(), started_ms: now_ms() }
    }

    /// The time of the latest write: seconds in the high half, an increment in the low half, as in a BSON timestamp.
    /// Never goes back, whatever the wall clock does.
    pub fn time(&self) -> u64 {
        self.store.time()
    }

    /// A time of about now, later than every write so far: for what is written or asked in a command.
    pub fn next(&self) -> u64 {
        let seconds = u64::try_from(now_ms() / 1000).unwrap_or(0) & u64::from(u32::MAX);
        (seconds << 32 | 1).max(self.time().saturating_add(1))
    }

    pub fn uptime_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    pub fn started_ms(&self) -> i64 {
        self.started_ms
    }
}
