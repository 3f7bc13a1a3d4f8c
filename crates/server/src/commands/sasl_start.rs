//! `saslStart`: the first message of an authentication.

use super::prelude::*;
use crate::auth::login::{self, Start};

pub(super) static COMMAND: Command = Command {
    name: "saslStart",
    doc: "Begins an authentication (SCRAM-SHA-256 or SCRAM-SHA-1).",
    privilege: Privilege::Public,
    stable: true,
    plain: true,
    run: sasl_start,
    ..Command::BASE
};

fn sasl_start(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let start = Start::of(request)?;
    let answer = login::start(&start, request.db, call)?;
    call.reply.append_fields(answer.to_doc().as_raw());
    Ok(())
}
