//! Every limit of the server in one table: its default, its flag, what it is for. The numbers that a client can meet are
//! those of Azure DocumentDB, so that what runs here runs there.

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Flag of `espalier serve`, without the dashes.
    pub flag: &'static str,
    pub default: u64,
    /// The greatest value it can be given.
    pub most: u64,
    pub doc: &'static str,
    /// What a client meets at the limit.
    pub meets: &'static str,
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

const MIB: u64 = 1024 * 1024;
/// As much as anybody likes: far below where arithmetic would overflow.
const ANY: u64 = 1 << 40;

macro_rules! limits {
    ($($name:ident = $default:expr, $most:expr, $flag:literal, $doc:literal, $meets:literal;)*) => {
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

        /// The table, sorted by the limits' names.
        pub static ALL: &[Limit] = &[
            $(Limit {
                flag: $flag,
                default: $default,
                most: $most,
                doc: $doc,
                meets: $meets,
                get: |limits| limits.$name,
                set: |limits, value| limits.$name = value,
            },)*
        ];
    };
}

limits! {
    collections_max = 1_000, ANY, "max-collections", "collections in all databases together", "OperationFailed (96)";
    connections_max = 10_000, ANY, "max-connections", "open client connections", "the connection is closed";
    cursor_timeout_seconds = 600, ANY, "cursor-timeout-seconds", "an idle cursor is closed after this long", "CursorNotFound (43)";
    cursors_max = 10_000, ANY, "max-cursors", "open cursors of all clients together", "TemporarilyUnavailable (365)";
    database_name_bytes_max = 63, 63, "max-database-name-bytes", "bytes of a database's name", "InvalidNamespace (73)";
    document_bytes_max = 16 * MIB, 16 * MIB, "max-document-bytes", "bytes of one document", "BadValue (2) for an insert, 17419 for an update, 17420 for an upsert; 10334 for what is larger than 16 MiB and 16 KiB";
    document_depth_max = 100, 180, "max-document-depth", "levels of nesting in one document", "Overflow (15)";
    history_bytes_max = 1024 * MIB, ANY, "history-bytes", "bytes of log that change streams can be resumed from", "ChangeStreamHistoryLost (286)";
    history_seconds_max = 24 * 3600, ANY, "history-seconds", "change streams can be resumed from this long ago, as far as --history-bytes allows", "ChangeStreamHistoryLost (286)";
    in_flight_bytes_max = 512 * MIB, ANY, "max-in-flight-bytes", "bytes of large requests being received or executed at once", "the request waits; after 30 s the connection is closed";
    in_flight_reply_bytes_max = 512 * MIB, ANY, "max-in-flight-reply-bytes", "bytes of large replies being written or sent at once", "the reply waits; TemporarilyUnavailable (365) after 30 s";
    index_fields_max = 32, 32, "max-index-fields", "fields in the key of one index", "13103";
    index_key_bytes_max = 16 * MIB, 16 * MIB, "max-index-key-bytes", "bytes of one index entry", "17280";
    indexes_max = 64, ANY, "max-indexes", "indexes of one collection", "CannotCreateIndex (67)";
    namespace_bytes_max = 255, 255, "max-namespace-bytes", "bytes of a database's and a collection's name together", "InvalidNamespace (73)";
    pipeline_stages_max = 1_000, ANY, "max-pipeline-stages", "stages of one aggregation pipeline", "7749501";
    session_timeout_minutes = 30, 1_440, "session-timeout-minutes", "an idle session is forgotten after this long", "in hello, so that drivers know";
    sessions_max = 100_000, ANY, "max-sessions", "logical sessions of all clients together", "TooManyLogicalSessions (261)";
    slow_ms = 100, ANY, "slow-ms", "a command that takes longer is logged", "a line in the log";
    snapshot_bytes_max = 1024 * MIB, ANY, "snapshot-bytes", "bytes of overwritten and deleted versions kept for reads at an earlier time (atClusterTime)", "SnapshotTooOld (239)";
    snapshot_seconds_max = 300, ANY, "snapshot-seconds", "reads can be at a time (atClusterTime) this long ago, as far as --snapshot-bytes allows", "SnapshotTooOld (239)";
    sort_bytes_max = 100 * MIB, ANY, "max-sort-bytes", "bytes that one sort or group holds in memory", "it goes on on disk, or fails with 292 if allowDiskUse is false";
    threads_max = 2_000, ANY, "max-threads", "threads that execute commands, beside one for each processor", "the command waits";
    transaction_bytes_max = 128 * MIB, ANY, "max-transaction-bytes", "bytes that one transaction may write", "TransactionTooLarge (257)";
    transaction_seconds_max = 30, ANY, "max-transaction-seconds", "a transaction is aborted after this long", "NoSuchTransaction (251)";
    write_batch_max = 25_000, 100_000, "max-write-batch", "writes in one insert, update or delete command", "InvalidLength (16); in hello, so that drivers split";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_allowed() {
        assert!(ALL.iter().all(|limit| (1..=limit.most).contains(&limit.default)));
    }

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
