//! `isMaster`: what `hello` was called before, and what drivers still send first.

use super::hello::answer;
use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "isMaster",
    aliases: &["ismaster"],
    doc: "The old name of hello.",
    privilege: Privilege::Public,
    before_handshake: true,
    plain: true,
    own_max_time: true,
    stable: true,
    run: is_master,
    ..Command::BASE
};

fn is_master(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    answer(request, call, "ismaster")
}
