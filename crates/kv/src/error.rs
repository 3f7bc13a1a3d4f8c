//! What can go wrong, narrow enough to act on. Messages say what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub type Result<T, E = KvError> = std::result::Result<T, E>;

/// An error of the storage engine. Cloneable, because one failed write is reported to many.
#[derive(Debug, Clone)]
pub enum KvError {
    /// The operating system refused an operation on a file.
    Io { path: PathBuf, op: &'static str, source: Arc<io::Error> },
    /// Bytes on disk are not what was written.
    Corrupt { path: PathBuf, offset: u64, what: String },
    /// Another process has the folder open.
    Locked { path: PathBuf },
    /// An earlier write failed, so nothing more is accepted until a restart.
    Poisoned { reason: String },
    /// The files were written by another version of the format.
    UnsupportedFormat { path: PathBuf, found: u32, supported: u32 },
    /// A key, value or batch is over its limit.
    TooLarge { what: &'static str, bytes: usize, bytes_max: usize },
    /// History was asked for from before what is kept.
    HistoryLost { after: u64, kept_after: u64 },
    /// The engine was closed.
    Closed,
}

impl KvError {
    pub(crate) fn io(path: &Path, op: &'static str, source: io::Error) -> KvError {
        KvError::Io { path: path.to_path_buf(), op, source: Arc::new(source) }
    }

    pub(crate) fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> KvError {
        KvError::Corrupt { path: path.to_path_buf(), offset, what: what.into() }
    }
}

impl fmt::Display for KvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KvError::Io { path, op, source } => {
                write!(f, "cannot {op} {}: {source}", path.display())
            }
            KvError::Corrupt { path, offset, what } => {
                write!(f, "{} is damaged at byte {offset}: {what}; restore this folder from a backup", path.display())
            }
            KvError::Locked { path } => {
                write!(f, "{} is in use by another process; stop that one or choose another folder", path.display())
            }
            KvError::Poisoned { reason } => {
                write!(f, "writing stopped after an earlier failure ({reason}); mend the cause and restart")
            }
            KvError::UnsupportedFormat { path, found, supported } => write!(
                f,
                "{} has storage format {found}, this version reads {supported}; open it with the version that wrote it",
                path.display()
            ),
            KvError::TooLarge { what, bytes, bytes_max } => {
                write!(f, "{what} of {bytes} bytes is over the limit of {bytes_max}")
            }
            KvError::HistoryLost { after, kept_after } => {
                write!(f, "the history after {after} is gone; what is kept begins after {kept_after}")
            }
            KvError::Closed => write!(f, "the storage engine is closed"),
        }
    }
}

impl std::error::Error for KvError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            KvError::Io { source, .. } => Some(&**source),
            _ => None,
        }
    }
}

/// Why a commit did not happen. Nothing of the batch is visible in either case.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// Another commit changed this key (or dropped its tree) after the snapshot was taken.
    Conflict {
        key: Box<[u8]>,
    },
    Kv(KvError),
}

impl From<KvError> for CommitError {
    fn from(error: KvError) -> CommitError {
        CommitError::Kv(error)
    }
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::Conflict { .. } => {
                write!(f, "a key of this commit was changed by another; read again and retry")
            }
            CommitError::Kv(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CommitError {}
