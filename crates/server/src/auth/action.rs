//! The actions that a privilege can allow, by MongoDB's names and in its order.

macro_rules! actions {
    ($($action:ident = $name:literal,)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Action {
            $($action,)*
        }

        impl Action {
            pub const ALL: &[(Action, &str)] = &[$((Action::$action, $name),)*];
        }
    };
}

actions! {
    AddShard = "addShard",
    AdvanceClusterTime = "advanceClusterTime",
    AllCollectionStats = "allCollectionStats",
    AnyAction = "anyAction",
    AppendOplogNote = "appendOplogNote",
    ApplicationMessage = "applicationMessage",
    AuditConfigure = "auditConfigure",
    AuditLogRotate = "auditLogRotate",
    AuthCheck = "authCheck",
    Authenticate = "authenticate",
    AuthSchemaUpgrade = "authSchemaUpgrade",
    BypassDocumentValidation = "bypassDocumentValidation",
    BypassWriteBlockingMode = "bypassWriteBlockingMode",
    ChangeCustomData = "changeCustomData",
    ChangePassword = "changePassword",
    ChangeOwnPassword = "changeOwnPassword",
    ChangeOwnCustomData = "changeOwnCustomData",
    ChangeStream = "changeStream",
    CheckFreeMonitoringStatus = "checkFreeMonitoringStatus",
    CleanupOrphaned = "cleanupOrphaned",
    ClearJumboFlag = "clearJumboFlag",
    CollMod = "collMod",
    CollStats = "collStats",
    Compact = "compact",
    CompactStructuredEncryptionData = "compactStructuredEncryptionData",
    ConnPoolStats = "connPoolStats",
    ConnPoolSync = "connPoolSync",
    ConvertToCapped = "convertToCapped",
    CreateCollection = "createCollection",
    CreateIndex = "createIndex",
    CreateRole = "createRole",
    CreateUser = "createUser",
    DbCheck = "dbCheck",
    DbHash = "dbHash",
    DbStats = "dbStats",
    DropCollection = "dropCollection",
    DropConnections = "dropConnections",
    DropDatabase = "dropDatabase",
    DropIndex = "dropIndex",
    DropRole = "dropRole",
    DropUser = "dropUser",
    EnableProfiler = "enableProfiler",
    EnableSharding = "enableSharding",
    ExportCollection = "exportCollection",
    Find = "find",
    FlushRouterConfig = "flushRouterConfig",
    ForceUuid = "forceUUID",
    Fsync = "fsync",
    GetClusterParameter = "getClusterParameter",
    GetDatabaseVersion = "getDatabaseVersion",
    GetDefaultRwConcern = "getDefaultRWConcern",
    GetCmdLineOpts = "getCmdLineOpts",
    GetLog = "getLog",
    GetParameter = "getParameter",
    GetShardMap = "getShardMap",
    GetShardVersion = "getShardVersion",
    GrantRole = "grantRole",
    HostInfo = "hostInfo",
    ImportCollection = "importCollection",
    Impersonate = "impersonate",
    IndexStats = "indexStats",
    Inprog = "inprog",
    Insert = "insert",
    Internal = "internal",
    InvalidateUserCache = "invalidateUserCache",
    KillAnyCursor = "killAnyCursor",
    KillAnySession = "killAnySession",
    KillCursors = "killCursors",
    Killop = "killop",
    ListCachedAndActiveUsers = "listCachedAndActiveUsers",
    ListCollections = "listCollections",
    ListDatabases = "listDatabases",
    ListIndexes = "listIndexes",
    ListSessions = "listSessions",
    ListShards = "listShards",
    LogRotate = "logRotate",
    MoveChunk = "moveChunk",
    Netstat = "netstat",
    OidReset = "oidReset",
    OperationMetrics = "operationMetrics",
    PlanCacheIndexFilter = "planCacheIndexFilter",
    PlanCacheRead = "planCacheRead",
    PlanCacheWrite = "planCacheWrite",
    RefineCollectionShardKey = "refineCollectionShardKey",
    ReIndex = "reIndex",
    Remove = "remove",
    RemoveShard = "removeShard",
    RenameCollectionSameDb = "renameCollectionSameDB",
    ReplSetConfigure = "replSetConfigure",
    ReplSetGetConfig = "replSetGetConfig",
    ReplSetGetStatus = "replSetGetStatus",
    ReplSetHeartbeat = "replSetHeartbeat",
    ReplSetResizeOplog = "replSetResizeOplog",
    ReplSetStateChange = "replSetStateChange",
    ReshardCollection = "reshardCollection",
    Resync = "resync",
    RevokeRole = "revokeRole",
    RotateCertificates = "rotateCertificates",
    RunTenantMigration = "runTenantMigration",
    ServerStatus = "serverStatus",
    SetAuthenticationRestriction = "setAuthenticationRestriction",
    SetClusterParameter = "setClusterParameter",
    SetDefaultRwConcern = "setDefaultRWConcern",
    SetFeatureCompatibilityVersion = "setFeatureCompatibilityVersion",
    SetFreeMonitoring = "setFreeMonitoring",
    SetParameter = "setParameter",
    SetUserWriteBlockMode = "setUserWriteBlockMode",
    ShardedDataDistribution = "shardedDataDistribution",
    ShardingState = "shardingState",
    Shutdown = "shutdown",
    SplitChunk = "splitChunk",
    SplitVector = "splitVector",
    StorageDetails = "storageDetails",
    Top = "top",
    Touch = "touch",
    TrafficRecord = "trafficRecord",
    Unlock = "unlock",
    Update = "update",
    UseTenant = "useTenant",
    UseUuid = "useUUID",
    Validate = "validate",
    ViewRole = "viewRole",
    ViewUser = "viewUser",
    ApplyOps = "applyOps",
}

impl Action {
    pub fn parse(name: &str) -> Option<Action> {
        Action::ALL.iter().find(|(_, known)| *known == name).map(|(action, _)| *action)
    }

    pub fn name(self) -> &'static str {
        Action::ALL.iter().find(|(action, _)| *action == self).map_or("", |(_, name)| name)
    }
}

/// A set of actions, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ActionSet(u128);

const _: () = assert!(Action::ALL.len() <= 128, "an action needs its bit");

impl ActionSet {
    pub const fn of(actions: &[Action]) -> ActionSet {
        let (mut bits, mut i) = (0, 0);
        while i < actions.len() {
            bits |= 1 << actions[i] as u8;
            i += 1;
        }
        ActionSet(bits)
    }

    /// Also true for a set with `anyAction`.
    pub fn contains(self, action: Action) -> bool {
        self.0 & (1 << action as u8 | 1 << Action::AnyAction as u8) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn insert(&mut self, action: Action) {
        self.0 |= 1 << action as u8;
    }

    #[must_use]
    pub fn with(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 | other.0)
    }

    #[must_use]
    pub fn without(self, other: ActionSet) -> ActionSet {
        ActionSet(self.0 & !other.0)
    }

    /// In MongoDB's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Action::ALL.iter().filter(move |(action, _)| self.0 & (1 << *action as u8) != 0).map(|(_, name)| *name)
    }
}

impl FromIterator<Action> for ActionSet {
    fn from_iter<I: IntoIterator<Item = Action>>(actions: I) -> ActionSet {
        let mut set = ActionSet::default();
        actions.into_iter().for_each(|action| set.insert(action));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_one_bit_and_one_name() {
        for (action, name) in Action::ALL {
            assert_eq!(Action::parse(name), Some(*action));
            assert_eq!(action.name(), *name);
            assert_eq!(ActionSet::of(&[*action]).names().collect::<Vec<_>>(), [*name]);
        }
        assert!(ActionSet::of(&[Action::AnyAction]).contains(Action::Find));
        assert!(!ActionSet::of(&[Action::Find]).contains(Action::Insert));
    }
}
