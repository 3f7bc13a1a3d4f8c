//! `dropDatabase`: a database with all its collections.

use espalier_store::{EventKind, Happening, Namespace};
use espalier_value::number::Number;

use super::prelude::*;
use crate::write_batch::wait_for_writes_allowed;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "dropDatabase",
    doc: "Drops a database.",
    privilege: Privilege::Database(&[Action::DropDatabase]),
    stable: true,
    writes: true,
    run: drop_database,
    ..Command::BASE
};

fn drop_database(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("dropDatabase")?;
    let Some(number) = Number::of(request.argument) else {
        return Err(Error::type_mismatch(format!(
            "BSON field 'dropDatabase.dropDatabase' is the wrong type '{}', expected types '[long, int, decimal, double']",
            request.argument.ty().name()
        )));
    };
    if number.to_i64_clamped() != 1 {
        return Err(Error::new(Code(5_255_100), "Have to pass 1 as 'drop' parameter"));
    }
    if matches!(request.db, "admin" | "local" | "config") {
        let message = format!("Dropping the '{}' database is prohibited.", request.db);
        return Err(Error::new(Code::IllegalOperation, message));
    }
    let concern = WriteConcern::of(request)?;
    wait_for_writes_allowed(call)?;
    // Everything goes, also what belongs to patterns.
    let mut transaction = call.begin_raw()?;
    let collections = transaction.collections(request.db)?;
    for collection in &collections {
        transaction.drop_collection(&Namespace::new(request.db, &collection.name))?;
    }
    if !collections.is_empty() {
        transaction.announce(Happening::new(Namespace::new(request.db, ""), EventKind::DropDatabase))?;
    }
    let commit = call.commit(transaction)?;
    call.server.cursors.end_database(request.db, "database dropped");
    call.server.top.forget(request.db, None);
    call.server.wake_all();
    concern.fulfil(call, commit)
}
