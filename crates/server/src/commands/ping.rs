//! `ping` answers, and so shows that the server does.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "ping",
    doc: "Answers at once.",
    privilege: Privilege::Public,
    stable: true,
    run: ping,
    ..Command::BASE
};

fn ping(request: &Request<'_>, _: &mut Call<'_>) -> Result<()> {
    request.no_fields("ping")
}
