//! Every limit of the server in one table: its default, its flag, what it is for. The numbers that a client can meet are
//! those of Azure DocumentDB, so that what runs here runs there.

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Flag of `espalier serve`, without the dashes.
    pub flag: &'static str,
    pub default: u64,
    pub doc: &'static str,
    get: fn(&Limits) -> u64,
    set: fn(&mut Limits, u64),
}

impl Limit {
    pub fn get(&self, limits: &Limits) -> u64 {
        (self.get)(limits)
    }

    pub fn set(&self, limits: &mut Limits, value: u64) {
        (self.set)(limits, value);
    }
}

macro_rules! limits {
    ($($name:ident = $default:expr, $flag:literal, $doc:literal;)*) => {
        /// The limits in force.
        #[derive(Clone, Debug)]
        pub struct Limits {
            $(#[doc = $doc] pub $name: u64,)*
        }

        impl Default for Limits {
            fn default() -> Limits {
                Limits { $($name: $default,)* }
            }
        }

        /// The table, sorted by flag.
        pub static ALL: &[Limit] = &[
            $(Limit {
                flag: $flag,
                default: $default,
                doc: $doc,
                get: |limits| limits.$name,
                set: |limits, value| limits.$name = value,
            },)*
        ];
    };
}

limits! {
    collections_max = 1_000, "max-collections", "collections in all databases together";
    connections_max = 10_000, "max-connections", "open client connections";
    cursor_timeout_seconds = 600, "cursor-timeout-seconds", "an idle cursor is closed after this long";
    cursors_max = 10_000, "max-cursors", "open cursors of all clients together";
    document_bytes_max = 16 * 1024 * 1024, "max-document-bytes", "bytes of one document";
    document_depth_max = 100, "max-document-depth", "levels of nesting in one document";
    history_bytes_max = 1024 * 1024 * 1024, "history-bytes", "bytes of log that change streams can be resumed from";
    history_seconds_max = 24 * 3600, "history-seconds", "change streams can be resumed from this long ago, as far as --history-bytes allows";
    in_flight_bytes_max = 512 * 1024 * 1024, "max-in-flight-bytes", "bytes of large requests being received or executed at once";
    indexes_max = 64, "max-indexes", "indexes of one collection";
    pipeline_stages_max = 1_000, "max-pipeline-stages", "stages of one aggregation pipeline";
    session_timeout_minutes = 30, "session-timeout-minutes", "an idle session is forgotten after this long";
    sessions_max = 100_000, "max-sessions", "logical sessions of all clients together";
    snapshot_seconds = 60, "snapshot-seconds", "a snapshot that was read can be read again (atClusterTime) for this long";
    slow_ms = 100, "slow-ms", "a command that takes longer is logged";
    threads_max = 2_000, "max-threads", "threads that execute commands";
    transaction_bytes_max = 128 * 1024 * 1024, "max-transaction-bytes", "bytes that one transaction may write";
    transaction_seconds_max = 30, "max-transaction-seconds", "a transaction is aborted after this long";
    write_batch_max = 25_000, "max-write-batch", "writes in one insert, update or delete command";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_unique_and_sets_its_own_limit() {
        for (i, limit) in ALL.iter().enumerate() {
            let mut limits = Limits::default();
            assert_eq!(limit.get(&limits), limit.default);
            limit.set(&mut limits, 7);
            for (j, other) in ALL.iter().enumerate() {
                assert_eq!(other.get(&limits), if i == j { 7 } else { other.default });
                assert!(i == j || other.flag != limit.flag);
            }
        }
    }
}
