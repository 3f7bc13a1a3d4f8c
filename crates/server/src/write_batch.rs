//! What `insert`, `update` and `delete` have in common: the batch, its errors, its reply.

use espalier_store::{CommitToken, Namespace};
use espalier_value::{Code, Error, Result, ValueRef};

use crate::call::Call;
use crate::commands::ELECTION_ID;
use crate::request::{Batch, Request};
use crate::sessions::Retry;
use crate::write_concern::WriteConcern;

/// The batch of a write command: beside the body, or in it.
pub fn batch<'a>(request: &Request<'a>, name: &str, call: &Call<'_>, in_body: Option<Batch<'a>>) -> Result<Batch<'a>> {
    request.check_sequences(name)?;
    let batch = request.sequence(name).map(Batch::Sequence).or(in_body);
    let batch = batch.ok_or_else(|| crate::fields::missing(request.name, name))?;
    let (len, max) = (batch.len(), call.server.options.limits.write_batch_max);
    if len == 0 || len as u64 > max {
        let message = format!("Write batch sizes must be between 1 and {max}. Got {len} operations.");
        return Err(Error::new(Code::InvalidLength, message));
    }
    Ok(batch)
}

/// Collections of the system are not for clients to write to.
pub fn check_writable(ns: &Namespace, call: &Call<'_>) -> Result<()> {
    if ns.is_system() && call.transaction.is_some() {
        let message = format!("Cannot write to system collection {ns} within a transaction.");
        return Err(Error::new(Code(50791), message));
    }
    if ns.is_system() && ns.collection() != "system.js" {
        return Err(Error::new(Code::InvalidNamespace, format!("Invalid system namespace: {ns}")));
    }
    Ok(())
}

/// Waits while an operator holds writes back (`fsync` with `lock`).
pub fn wait_for_writes_allowed(call: &Call<'_>) -> Result<()> {
    if !call.server.fsync_locks.is_locked() {
        return Ok(());
    }
    call.server.fsync_locks.wait(|| call.check_interrupt())
}

/// Errors that end the whole command and not one write of it.
pub fn is_fatal(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::MaxTimeMSExpired
            | Code::Interrupted
            | Code::InterruptedAtShutdown
            | Code::ShutdownInProgress
            | Code::ClientDisconnect
            | Code::InternalError
            | Code::WriteConflict
            | Code::NoSuchTransaction
            | Code::TransactionTooLarge
            | Code::TransactionExceededLifetimeLimitSeconds
    )
}

/// Writes that failed, with their place in the batch.
#[derive(Default)]
pub struct WriteErrors(Vec<(usize, Error)>);

impl WriteErrors {
    pub fn push(&mut self, index: usize, error: Error) {
        self.0.push((index, error));
    }

    pub fn write(&mut self, call: &mut Call<'_>) {
        if self.0.is_empty() {
            return;
        }
        self.0.sort_by_key(|(index, _)| *index);
        let mut array = call.reply.array("writeErrors");
        for (index, error) in &self.0 {
            let mut entry = array.push_doc();
            entry.append("index", *index as i32).append("code", error.code().0);
            entry.append("errmsg", error.message());
            if let Some(info) = error.info() {
                entry.append_fields(info.as_raw());
            }
        }
        drop(array);
        call.write_failed = true;
        call.server.metrics.user_errors.add(self.0.len() as u64);
    }
}

/// Which statements were carried out when the command was sent before.
pub fn write_retried(call: &mut Call<'_>, retry: Option<&Retry>) {
    if let Some(retry) = retry {
        retry.write(&mut call.reply);
        call.server.metrics.retried_statements.add(retry.retried().len() as u64);
        call.server.metrics.retried_commands.add(u64::from(!retry.retried().is_empty()));
    }
}

/// The end of every write command: wake who waits for documents, wait for the disk, and tell when it happened.
pub fn finish(call: &mut Call<'_>, ns: &Namespace, concern: &WriteConcern, commit: CommitToken) -> Result<()> {
    if commit != CommitToken::default() {
        call.server.notifier.written(ns);
    }
    let time = call.server.clock.time();
    call.reply.append("electionId", ValueRef::ObjectId(ELECTION_ID.0));
    call.reply.doc("opTime").append_timestamp("ts", time).append("t", 1i64);
    concern.fulfil(call, commit)
}
