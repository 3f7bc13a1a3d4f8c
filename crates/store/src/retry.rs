//! What is remembered of retryable writes and of transactions that committed, so that a client which lost the answer
//! gets it again and nothing happens twice. Kept in the same commit as the write itself.

use crate::{Deleted, Updated};

/// The UUID of a logical session.
pub type SessionId = [u8; 16];

/// A statement of a retryable write: carried out at most once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statement {
    pub session: SessionId,
    pub txn_number: i64,
    pub id: i32,
}

/// The statements of an `insert`, one for each document.
#[derive(Clone, Debug)]
pub struct Statements {
    pub session: SessionId,
    pub txn_number: i64,
    pub ids: Vec<i32>,
}

/// What came of statements that were carried out.
#[derive(Clone, Debug)]
pub enum Remembered {
    /// These documents are in.
    Inserted(Vec<i32>),
    Updated(i32, Updated),
    Deleted(i32, Deleted),
    /// The transaction of this number committed.
    Committed,
}

/// The newest number of a session of which something is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RememberedSession {
    pub session: SessionId,
    pub txn_number: i64,
    /// It was a transaction.
    pub committed: bool,
}
