//! `whatsmyuri`: the client's address as the server sees it.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "whatsmyuri",
    doc: "Says which address the client comes from.",
    privilege: Privilege::Public,
    run: whatsmyuri,
    ..Command::BASE
};

fn whatsmyuri(_: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let you = call.client.peer.to_string();
    call.reply.append("you", &you);
    Ok(())
}
