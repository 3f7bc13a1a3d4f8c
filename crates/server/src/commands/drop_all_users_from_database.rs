//! `dropAllUsersFromDatabase`: removes the users of a database.

use espalier_value::doc;

use super::prelude::*;
use crate::auth::directory::{USERS, change};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "dropAllUsersFromDatabase",
    doc: "Drops the users of a database.",
    privilege: Privilege::Database(&[Action::DropUser]),
    writes: true,
    run: drop_all_users_from_database,
    ..Command::BASE
};

fn drop_all_users_from_database(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("dropAllUsersFromDatabase")?;
    let concern = WriteConcern::of(request)?;
    let dropped = change(call, &concern, |directory| directory.delete(&USERS, doc! { "db": request.db }.as_raw()))?;
    call.reply.append_count("n", dropped);
    Ok(())
}
