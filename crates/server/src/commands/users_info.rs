//! `usersInfo`: the users of a database. There are none yet.

use super::prelude::*;

pub(super) static COMMAND: Command =
    Command { name: "usersInfo", doc: "Lists the users of a database.", run: users_info, ..Command::BASE };

fn users_info(_: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    call.reply.array("users");
    Ok(())
}
