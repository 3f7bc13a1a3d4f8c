//! `commitTransaction`: makes what a transaction wrote visible to all, at once. Sent again, it answers the same.

use super::prelude::*;
use crate::sessions::Ending;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "commitTransaction",
    doc: "Commits a transaction.",
    privilege: Privilege::Authenticated,
    place: Place::Admin,
    stable: true,
    writes: true,
    run: commit_transaction,
    ..Command::BASE
};

fn commit_transaction(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    check_fields(request)?;
    let concern = WriteConcern::of(request)?;
    let (Some(session), Some(number)) = (&call.session, request.generic.txn_number) else {
        return Err(outside(request));
    };
    let server = call.server;
    let commit = match session.ending(number)? {
        // Nobody knows whether the client got the first answer: this one promises as much.
        Ending::Committed => Default::default(),
        Ending::Open(joint) => {
            let committed = match joint.take() {
                Some(mut transaction) => {
                    transaction.remember_commit(session.key(), number);
                    transaction.commit()
                }
                None => Err(Error::new(Code::NoSuchTransaction, "the transaction has been aborted")),
            };
            match committed {
                Ok(commit) => {
                    server.metrics.ended(true, session.committed());
                    commit
                }
                Err(error) => {
                    session.abort();
                    return Err(error);
                }
            }
        }
    };
    concern.fulfil(call, commit)
}

/// What mongos sends along is of no use here.
pub(super) fn check_fields(request: &Request<'_>) -> Result<()> {
    for field in request.fields(request.name) {
        match field.name() {
            "recoveryToken" => drop(field.doc()?),
            _ => return Err(field.unknown()),
        }
    }
    Ok(())
}

pub(super) fn outside(request: &Request<'_>) -> Error {
    Error::new(Code::CommandFailed, format!("{} must be run within a transaction", request.name))
}
