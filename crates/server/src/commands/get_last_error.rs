//! `getLastError`, which MongoDB 5.1 removed: old clients are told so with the error they know.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "getLastError",
    aliases: &["getlasterror"],
    doc: "Says that it is no longer supported.",
    privilege: Privilege::Public,
    run: get_last_error,
    ..Command::BASE
};

fn get_last_error(_: &Request<'_>, _: &mut Call<'_>) -> Result<()> {
    Err(Error::new(Code(5_739_000), "getLastError command is not supported"))
}
