//! `rolesInfo`: the roles that users of a database can have. There are none yet.

use super::prelude::*;

pub(super) static COMMAND: Command =
    Command { name: "rolesInfo", doc: "Lists the roles of a database.", run: roles_info, ..Command::BASE };

fn roles_info(_: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    call.reply.array("roles");
    Ok(())
}
