//! What the server counts, for `serverStatus`, `top` and the metrics page.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::observe::{Class, Latency};

#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, n: u64) {
        // Most often nothing is to be added, and a look costs less than a write that other cores must hear of.
        if n > 0 {
            self.0.fetch_add(n, Ordering::Relaxed);
        }
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub struct Metrics {
    pub connections_created: Counter,
    pub connections_refused: Counter,
    pub requests: Counter,
    bytes_in: Counter,
    bytes_out: Counter,
    /// What compression saved.
    pub saved_in: Counter,
    pub saved_out: Counter,
    pub inserts: Counter,
    pub queries: Counter,
    pub updates: Counter,
    pub deletes: Counter,
    pub get_mores: Counter,
    pub docs_inserted: Counter,
    pub docs_updated: Counter,
    pub docs_deleted: Counter,
    pub docs_returned: Counter,
    pub keys_examined: Counter,
    pub docs_examined: Counter,
    /// Commands that read a whole collection.
    pub collection_scans: Counter,
    /// Commands that had to sort.
    pub sorts: Counter,
    pub user_errors: Counter,
    pub internal_errors: Counter,
    pub retried_commands: Counter,
    pub retried_statements: Counter,
    /// Commands that ended because somebody else had written first.
    pub write_conflicts: Counter,
    pub transaction_statements: Counter,
    pub transactions_aborted: Counter,
    pub transactions_committed: Counter,
    pub transactions_started: Counter,
    pub ttl_deleted: Counter,
    pub ttl_passes: Counter,
    reads: Latency,
    writes: Latency,
    others: Latency,
    /// From the first statement to the end, whichever it was.
    pub(crate) transactions: Latency,
    /// In the order of the list of commands.
    pub by_command: Vec<CommandCounts>,
}

#[derive(Default)]
pub struct CommandCounts {
    pub total: Counter,
    pub failed: Counter,
    pub micros: Counter,
}

impl Metrics {
    pub fn new(commands: usize) -> Metrics {
        Metrics { by_command: (0..commands).map(|_| Default::default()).collect(), ..Metrics::default() }
    }

    pub fn bytes_in(&self, n: usize) {
        self.bytes_in.add(n as u64);
    }

    pub fn bytes_out(&self, n: usize) {
        self.bytes_out.add(n as u64);
    }

    pub fn received(&self) -> u64 {
        self.bytes_in.get()
    }

    pub fn sent(&self) -> u64 {
        self.bytes_out.get()
    }

    /// Counts a command that has ended; `index` is its place in the list of commands.
    pub(crate) fn finished(&self, index: usize, class: Class, micros: u64, failed: bool) {
        self.latency(class).record(micros);
        if let Some(counts) = self.by_command.get(index) {
            counts.total.add(1);
            counts.failed.add(u64::from(failed));
            counts.micros.add(micros);
        }
    }

    pub(crate) fn latency(&self, class: Class) -> &Latency {
        match class {
            Class::Reads => &self.reads,
            Class::Writes => &self.writes,
            Class::Commands => &self.others,
        }
    }

    /// By the names of `opLatencies`.
    pub(crate) fn latencies(&self) -> [(&'static str, &Latency); 4] {
        [
            ("reads", &self.reads),
            ("writes", &self.writes),
            ("commands", &self.others),
            ("transactions", &self.transactions),
        ]
    }

    /// Counts a transaction that has ended.
    pub fn ended(&self, committed: bool, open: Duration) {
        let counter = if committed { &self.transactions_committed } else { &self.transactions_aborted };
        counter.add(1);
        self.transactions.record(u64::try_from(open.as_micros()).unwrap_or(u64::MAX));
    }
}

/// Memory of this process; zero where the system does not tell.
#[derive(Clone, Copy, Default)]
pub(crate) struct Memory {
    pub resident_bytes: u64,
    pub virtual_bytes: u64,
}

/// What the kernel counts in.
const PAGE_BYTES: u64 = 4096;

pub(crate) fn memory() -> Memory {
    let page = PAGE_BYTES;
    let Ok(statm) = std::fs::read_to_string("/proc/self/statm") else { return Memory::default() };
    let mut pages = statm.split_whitespace().map(|n| n.parse::<u64>().unwrap_or(0));
    let virtual_bytes = pages.next().unwrap_or(0) * page;
    Memory { virtual_bytes, resident_bytes: pages.next().unwrap_or(0) * page }
}
