//! What the server counts, for `serverStatus` and `top`.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
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
    pub inserts: Counter,
    pub queries: Counter,
    pub updates: Counter,
    pub deletes: Counter,
    pub get_mores: Counter,
    pub commands: Counter,
    pub docs_inserted: Counter,
    pub docs_updated: Counter,
    pub docs_deleted: Counter,
    pub docs_returned: Counter,
    pub keys_examined: Counter,
    pub docs_examined: Counter,
    pub user_errors: Counter,
    pub internal_errors: Counter,
    pub retried_statements: Counter,
    pub transaction_statements: Counter,
    pub transactions_aborted: Counter,
    pub transactions_committed: Counter,
    pub transactions_started: Counter,
    pub ttl_deleted: Counter,
    pub ttl_passes: Counter,
    /// Total and failed, in the order of the list of commands.
    pub by_command: Vec<(Counter, Counter)>,
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
}
