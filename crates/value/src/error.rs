//! The one table of error codes, and `Error`: what a client is told.
//!
//! Codes and names are MongoDB's. A code without a name (`Location40415`) is written `Code(40415)` where it is raised.

/// A MongoDB error code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Code(pub i32);

macro_rules! codes {
    ($($name:ident = $code:literal,)*) => {
        #[allow(non_upper_case_globals)]
        impl Code {
            $(pub const $name: Code = Code($code);)*

            /// Every code that has a name, in order of number.
            pub const NAMED: &[(Code, &str)] = &[$((Code($code), stringify!($name)),)*];
        }
    };
}

codes! {
    OK = 0,
    InternalError = 1,
    BadValue = 2,
    NoSuchKey = 4,
    GraphContainsCycle = 5,
    HostUnreachable = 6,
    HostNotFound = 7,
    UnknownError = 8,
    FailedToParse = 9,
    CannotMutateObject = 10,
    UserNotFound = 11,
    UnsupportedFormat = 12,
    Unauthorized = 13,
    TypeMismatch = 14,
    Overflow = 15,
    InvalidLength = 16,
    ProtocolError = 17,
    AuthenticationFailed = 18,
    IllegalOperation = 20,
    EmptyArrayOperation = 21,
    InvalidBSON = 22,
    AlreadyInitialized = 23,
    LockTimeout = 24,
    NamespaceNotFound = 26,
    IndexNotFound = 27,
    PathNotViable = 28,
    NonExistentPath = 29,
    InvalidPath = 30,
    RoleNotFound = 31,
    RolesNotRelated = 32,
    PrivilegeNotFound = 33,
    CannotBackfillArray = 34,
    UserModificationFailed = 35,
    RemoteChangeDetected = 36,
    FileRenameFailed = 37,
    FileNotOpen = 38,
    FileStreamFailed = 39,
    ConflictingUpdateOperators = 40,
    FileAlreadyOpen = 41,
    LogWriteFailed = 42,
    CursorNotFound = 43,
    UserDataInconsistent = 45,
    LockBusy = 46,
    NoMatchingDocument = 47,
    NamespaceExists = 48,
    InvalidRoleModification = 49,
    MaxTimeMSExpired = 50,
    ManualInterventionRequired = 51,
    DollarPrefixedFieldName = 52,
    InvalidIdField = 53,
    NotSingleValueField = 54,
    InvalidDBRef = 55,
    EmptyFieldName = 56,
    DottedFieldName = 57,
    RoleModificationFailed = 58,
    CommandNotFound = 59,
    ShardKeyNotFound = 61,
    OplogOperationUnsupported = 62,
    WriteConcernFailed = 64,
    MultipleErrorsOccurred = 65,
    ImmutableField = 66,
    CannotCreateIndex = 67,
    IndexAlreadyExists = 68,
    AuthSchemaIncompatible = 69,
    InvalidOptions = 72,
    InvalidNamespace = 73,
    WriteConcernLegacyOK = 75,
    NoReplicationEnabled = 76,
    UnknownReplWriteConcern = 79,
    IndexOptionsConflict = 85,
    IndexKeySpecsConflict = 86,
    NetworkTimeout = 89,
    CallbackCanceled = 90,
    ShutdownInProgress = 91,
    InvalidReplicaSetConfig = 93,
    NotYetInitialized = 94,
    OperationFailed = 96,
    UnsatisfiableWriteConcern = 100,
    NotExactValueField = 111,
    WriteConflict = 112,
    CommandNotSupported = 115,
    ConflictingOperationInProgress = 117,
    DocumentValidationFailure = 121,
    NotAReplicaSet = 123,
    CommandFailed = 125,
    LockNotFound = 128,
    CappedPositionLost = 136,
    ExceededMemoryLimit = 146,
    ReadConcernMajorityNotEnabled = 148,
    DurationOverflow = 159,
    IncompatibleCollationVersion = 161,
    CollectionIsEmpty = 162,
    ViewDepthLimitExceeded = 165,
    CommandNotSupportedOnView = 166,
    OptionNotSupportedOnView = 167,
    InvalidPipelineOperator = 168,
    CommandOnShardedViewNotSupportedOnMongod = 169,
    CannotIndexParallelArrays = 171,
    QueryPlanKilled = 175,
    AmbiguousIndexKeyPattern = 181,
    InvalidViewDefinition = 182,
    ClientMetadataMissingField = 183,
    ClientMetadataAppNameTooLarge = 184,
    ClientMetadataDocumentTooLarge = 185,
    ClientMetadataCannotBeMutated = 186,
    UnrecoverableRollbackError = 188,
    InvalidIndexSpecificationOption = 197,
    NoSuchSession = 206,
    InvalidUUID = 207,
    IncompleteTransactionHistory = 217,
    IllegalOpMsgFlag = 223,
    QueryFeatureNotAllowed = 224,
    TransactionTooOld = 225,
    AtomicityFailure = 227,
    CannotImplicitlyCreateCollection = 228,
    SessionTransferIncomplete = 229,
    MustUpgrade = 230,
    MaxSubPipelineDepthExceeded = 232,
    CursorKilled = 237,
    SnapshotTooOld = 239,
    ConversionFailure = 241,
    SnapshotUnavailable = 246,
    NoSuchTransaction = 251,
    TransactionCommitted = 256,
    TransactionTooLarge = 257,
    InvalidResumeToken = 260,
    TooManyLogicalSessions = 261,
    ExceededTimeLimit = 262,
    OperationNotSupportedInTransaction = 263,
    IndexBuildAborted = 276,
    ClientDisconnect = 279,
    ChangeStreamFatalError = 280,
    ChangeStreamHistoryLost = 286,
    NoQueryExecutionPlans = 291,
    QueryExceededMemoryLimitNoDiskUseAllowed = 292,
    TransactionExceededLifetimeLimitSeconds = 290,
    ObjectIsBusy = 314,
    APIVersionError = 322,
    APIStrictError = 323,
    APIDeprecationError = 324,
    MovePrimaryInProgress = 331,
    MechanismUnavailable = 334,
    IndexBuildAlreadyInProgress = 337,
    UnsupportedOpQueryCommand = 352,
    CollectionUUIDMismatch = 361,
    TemporarilyUnavailable = 365,
    InvalidBSONType = 404,
    NotWritablePrimary = 10107,
    BSONObjectTooLarge = 10334,
    DuplicateKey = 11000,
    TooManyDocumentSequences = 11021,
    InterruptedAtShutdown = 11600,
    Interrupted = 11601,
    InterruptedDueToReplStateChange = 11602,
    CursorInUse = 12051,
    BackgroundOperationInProgressForDatabase = 12586,
    BackgroundOperationInProgressForNamespace = 12587,
    MergeStageNoMatchingDocument = 13113,
    NotPrimaryNoSecondaryOk = 13435,
    OutOfDiskSpace = 14031,
    KeyTooLong = 17280,
    NotARetryableWriteCommand = 50768,
}

impl Code {
    /// `codeName` in a reply: the name, or `Location<number>`.
    pub fn name(self) -> String {
        match Code::NAMED.iter().find(|(code, _)| *code == self) {
            Some((_, name)) => (*name).to_string(),
            None => format!("Location{}", self.0),
        }
    }
}

/// An error as a client sees it: code, message, labels, and fields that belong to the code (`keyValue`, `errInfo`, …).
#[derive(Clone, Debug)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    code: Code,
    message: String,
    labels: Vec<&'static str>,
    info: Option<crate::DocBuf>,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { inner: Box::new(Inner { code, message: message.into(), labels: Vec::new(), info: None }) }
    }

    /// A bug of ours, never the client's fault.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(Code::InternalError, message)
    }

    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::new(Code::BadValue, message)
    }

    pub fn type_mismatch(message: impl Into<String>) -> Error {
        Error::new(Code::TypeMismatch, message)
    }

    pub fn failed_to_parse(message: impl Into<String>) -> Error {
        Error::new(Code::FailedToParse, message)
    }

    pub fn with_label(mut self, label: &'static str) -> Error {
        self.inner.labels.push(label);
        self
    }

    /// Fields that stand beside code and message in the reply.
    pub fn with_info(mut self, info: crate::DocBuf) -> Error {
        self.inner.info = Some(info);
        self
    }

    /// The same error with words before its message, as MongoDB wraps errors of an inner step.
    pub fn context(mut self, before: &str) -> Error {
        self.inner.message = format!("{before} :: caused by :: {}", self.inner.message);
        self
    }

    pub fn code(&self) -> Code {
        self.inner.code
    }

    pub fn message(&self) -> &str {
        &self.inner.message
    }

    pub fn labels(&self) -> &[&'static str] {
        &self.inner.labels
    }

    pub fn info(&self) -> Option<&crate::DocBuf> {
        self.inner.info.as_ref()
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}): {}", self.code().name(), self.code().0, self.message())
    }
}

impl std::error::Error for Error {}
