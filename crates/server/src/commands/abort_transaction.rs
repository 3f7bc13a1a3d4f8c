//! `abortTransaction`: undoes what a transaction wrote.

use super::commit_transaction::{check_fields, outside};
use super::prelude::*;
use crate::sessions::Ending;
use crate::transactions;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "abortTransaction",
    doc: "Aborts a transaction.",
    privilege: Privilege::Authenticated,
    place: Place::Admin,
    stable: true,
    writes: true,
    run: abort_transaction,
    ..Command::BASE
};

fn abort_transaction(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    check_fields(request)?;
    WriteConcern::of(request)?;
    let (Some(session), Some(number)) = (&call.session, request.generic.txn_number) else {
        return Err(outside(request));
    };
    match session.ending(number)? {
        Ending::Open(_) => {
            transactions::abort(call);
            Ok(())
        }
        Ending::Committed => {
            let message = format!("Transaction with {{ txnNumber: {number} }} has been committed.");
            Err(Error::new(Code::TransactionCommitted, message))
        }
    }
}
