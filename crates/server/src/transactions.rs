//! Commands inside a multi-document transaction: what is allowed there, starting it, going on with it, and what an error
//! does to it.

use espalier_store::{Begin, Mode, TransactionId};
use espalier_value::{Code, Error, Result, ValueRef};

use crate::call::Call;
use crate::commands::Command;
use crate::read_concern;
use crate::request::Request;
use crate::sessions::Joint;

/// The commands that may be part of a transaction, sorted.
static ALLOWED: &[&str] = &[
    "abortTransaction",
    "aggregate",
    "commitTransaction",
    "create",
    "createIndexes",
    "delete",
    "distinct",
    "find",
    "findAndModify",
    "getMore",
    "insert",
    "killCursors",
    "update",
];

/// Whether a command is sent as part of a transaction.
pub fn is_part(request: &Request<'_>) -> bool {
    request.generic.autocommit == Some(false)
}

pub fn ends_one(command: &Command) -> bool {
    matches!(command.name, "abortTransaction" | "commitTransaction")
}

/// What must hold before the session is looked at.
pub fn check(command: &Command, request: &Request<'_>) -> Result<()> {
    let name = command.name;
    let unsupported = |message: String| Err(Error::new(Code::OperationNotSupportedInTransaction, message));
    if name == "count" {
        return unsupported(
            "Cannot run 'count' in a multi-document transaction. Please see \
             http://dochub.mongodb.org/core/transaction-count for a recommended alternative."
                .into(),
        );
    }
    if ALLOWED.binary_search(&name).is_err() {
        return unsupported(format!("Cannot run '{name}' in a multi-document transaction."));
    }
    if request.generic.raw_data {
        return unsupported("rawData cannot be used in a multi-document transaction".into());
    }
    let start = request.generic.start_transaction;
    match name {
        "commitTransaction" if start => return unsupported("Cannot start a transaction with a commit".into()),
        "abortTransaction" if start => return unsupported("Cannot start a transaction with an abort".into()),
        "killCursors" if start => {
            let message = "Cannot run killCursors as the first operation in a multi-document transaction.";
            return unsupported(message.into());
        }
        _ => {}
    }
    if matches!(request.db, "config" | "local") {
        let db = if request.db == "config" { "the config" } else { "the 'local'" };
        return unsupported(format!("Cannot run command against {db} database in a transaction."));
    }
    let invalid = |message: &str| Err(Error::new(Code::InvalidOptions, message));
    if request.generic.write_concern.is_some() && !ends_one(command) {
        return invalid("writeConcern is not allowed within a multi-statement transaction");
    }
    if let Some(concern) = request.generic.read_concern {
        if !start && !concern.is_empty() {
            return invalid("Only the first command in a transaction may specify a readConcern");
        }
        match concern.get("level") {
            None | Some(ValueRef::String("local" | "majority" | "snapshot")) => {}
            Some(_) => {
                return invalid(
                    "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run \
                     in a transaction",
                );
            }
        }
    }
    Ok(())
}

/// Runs a command in the transaction of its session, which `call` has checked out.
pub fn run(command: &Command, request: &Request<'_>, number: i64, call: &mut Call<'_>) -> Result<()> {
    if ends_one(command) {
        return (command.run)(request, call);
    }
    let Some(session) = &call.session else {
        return Err(Error::internal("a transaction without its session"));
    };
    let joint = if request.generic.start_transaction {
        let context = std::sync::Arc::new(call.context());
        let begin = Begin { mode: Mode::Transaction, want_changes: false, raw: false, context };
        session.start(number, || {
            let store = &call.server.store;
            let mut transaction = match read_concern::transaction_time(request) {
                Some(time) => store.begin_at(begin, Some(time))?.0,
                None => store.begin(begin)?,
            };
            transaction.set_identity(TransactionId { lsid: session.lsid().to_doc(), number });
            Ok(Joint::new(number, transaction, call.server))
        })?
    } else {
        session.resume(number)?
    };
    call.server.metrics.transaction_statements.add(1);
    if request.generic.start_transaction {
        call.server.metrics.transactions_started.add(1);
    }
    call.transaction = Some(joint);
    let mut abort = Unfinished { call, ended: false };
    let result = (command.run)(request, abort.call);
    // As in MongoDB, whatever goes wrong in a transaction is its end.
    abort.ended = result.is_ok() && !abort.call.write_failed;
    result
}

/// Aborts the transaction unless its command ended well: after an error, and after a panic, too.
struct Unfinished<'a, 'c> {
    call: &'a mut Call<'c>,
    ended: bool,
}

impl Drop for Unfinished<'_, '_> {
    fn drop(&mut self) {
        self.call.transaction = None;
        if !self.ended {
            abort(self.call);
        }
    }
}

/// Aborts the transaction that the call's session has open.
pub fn abort(call: &Call<'_>) {
    if let Some(session) = &call.session {
        session.abort();
    }
}

/// What drivers go by when they decide whether to try again.
pub fn label(command: &Command, request: &Request<'_>, error: &Error) -> Option<&'static str> {
    if !is_part(request) {
        return None;
    }
    let code = error.code();
    let transient = match code {
        Code::WriteConflict | Code::LockTimeout | Code::SnapshotTooOld | Code::SnapshotUnavailable => true,
        Code::NoSuchTransaction => true,
        _ => !ends_one(command) && is_passing(code),
    };
    if transient {
        return Some("TransientTransactionError");
    }
    let unknown = matches!(code, Code::InternalError | Code::MaxTimeMSExpired | Code::Interrupted);
    (command.name == "commitTransaction" && unknown).then_some("UnknownTransactionCommitResult")
}

/// Errors that pass when the server is there again.
pub fn is_passing(code: Code) -> bool {
    matches!(
        code,
        Code::InterruptedAtShutdown
            | Code::ShutdownInProgress
            | Code::HostUnreachable
            | Code::TransactionExceededLifetimeLimitSeconds
    )
}
