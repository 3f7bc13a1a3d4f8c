//! `logout`: ends the authentication of the connection against a database.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "logout",
    doc: "Ends the authentication of the connection.",
    privilege: Privilege::Public,
    run: logout,
    ..Command::BASE
};

fn logout(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("logout")?;
    call.client.identity().remove(request.db);
    Ok(())
}
