//! `features`: what the server offers beyond the usual. No JavaScript.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "features",
    doc: "Lists features.",
    privilege: Privilege::Authenticated,
    run: features,
    ..Command::BASE
};

fn features(_: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    call.reply.doc("js").append("utf8", true);
    Ok(())
}
