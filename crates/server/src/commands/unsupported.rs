//! The commands that MongoDB 6.0 has and Espalier has not (yet): using one is an error that says so by name.

use super::Command;

macro_rules! unsupported {
    ($($name:literal, $doc:literal;)*) => {
        /// Sorted by name.
        pub static ALL: &[Command] = &[$(Command::unsupported($name, $doc),)*];
    };
}

unsupported! {
    "appendOplogNote", "Adds an entry without effect to the log.";
    "applyOps", "Applies entries of a log.";
    "cleanupOrphaned", "Removes documents that another shard owns.";
    "cloneCollectionAsCapped", "Copies a collection into a capped one.";
    "compact", "Rewrites the files of a collection.";
    "compactStructuredEncryptionData", "Compacts the metadata of queryable encryption.";
    "convertToCapped", "Turns a collection into a capped one.";
    "dbHash", "Hashes the collections of a database.";
    "dropConnections", "Drops connections to other members.";
    "filemd5", "Hashes a file in GridFS.";
    "flushRouterConfig", "Forgets cached routing information.";
    "getAuditConfig", "Returns the configuration of auditing.";
    "getClusterParameter", "Returns a parameter of the cluster.";
    "getShardMap", "Lists the shards.";
    "getShardVersion", "Returns the version of a sharded collection.";
    "lockInfo", "Lists the locks.";
    "logRotate", "Begins a new log file.";
    "mapReduce", "Runs JavaScript over a collection.";
    "planCacheClearFilters", "Removes index filters.";
    "planCacheSetFilter", "Sets an index filter.";
    "replSetAbortPrimaryCatchUp", "Ends the catch-up of a new primary.";
    "replSetFreeze", "Keeps a member from becoming primary.";
    "replSetInitiate", "Initiates a replica set.";
    "replSetMaintenance", "Takes a member out of service.";
    "replSetReconfig", "Changes the configuration of a replica set.";
    "replSetResizeOplog", "Changes the size of the oplog.";
    "replSetStepDown", "Makes the primary step down.";
    "replSetStepUp", "Makes a member primary.";
    "replSetSyncFrom", "Changes which member to replicate from.";
    "rotateCertificates", "Reads the certificates anew.";
    "setAuditConfig", "Changes the configuration of auditing.";
    "setClusterParameter", "Changes a parameter of the cluster.";
    "setDefaultRWConcern", "Changes the default read and write concern.";
    "setFeatureCompatibilityVersion", "Changes the feature compatibility version.";
    "setFreeMonitoring", "Switches free monitoring on or off.";
    "setIndexCommitQuorum", "Changes how many members an index build waits for.";
    "setUserWriteBlockMode", "Blocks the writes of users.";
    "shardingState", "Describes the state of sharding.";
    "splitVector", "Finds points to split a chunk at.";
    "validateDBMetadata", "Checks the metadata of databases.";
}
