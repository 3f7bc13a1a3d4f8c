//! `logout`: nobody is logged in, so there is nothing to do.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "logout",
    doc: "Ends the authentication of the connection.",
    privilege: Privilege::Public,
    run: logout,
    ..Command::BASE
};

fn logout(_: &Request<'_>, _: &mut Call<'_>) -> Result<()> {
    Ok(())
}
