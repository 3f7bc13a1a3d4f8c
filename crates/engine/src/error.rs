//! Storage errors become a client's errors here and nowhere else.

use espalier_kv::KvError;
use espalier_value::{Code, Error};

pub fn kv(error: KvError) -> Error {
    let code = match &error {
        KvError::TooLarge { .. } => Code::BSONObjectTooLarge,
        KvError::HistoryLost { .. } => {
            return Error::new(
                Code::ChangeStreamHistoryLost,
                "Resume of change stream was not possible, as the resume point may no longer be in the oplog.",
            )
            .with_label("NonResumableChangeStreamError");
        }
        _ => Code::InternalError,
    };
    Error::new(code, format!("storage: {error}"))
}

/// A transaction that has outgrown its memory.
pub fn too_large(bytes: usize, bytes_max: usize) -> Error {
    let message = format!(
        "Total size of all transaction operations must be less than {bytes_max} bytes (--max-transaction-bytes). Actual \
         size is {bytes}"
    );
    Error::new(Code::TransactionTooLarge, message)
}

/// The conflict a client sees in a transaction; outside one it is retried and never seen.
pub fn write_conflict() -> Error {
    Error::new(
        Code::WriteConflict,
        "WriteConflict error: this operation conflicted with another operation. Please retry your operation or \
         multi-document transaction.",
    )
}
