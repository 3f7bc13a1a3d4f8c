//! `saslContinue`: the next message of an authentication.

use super::prelude::*;
use crate::auth::login;

pub(super) static COMMAND: Command = Command {
    name: "saslContinue",
    doc: "Goes on with an authentication.",
    privilege: Privilege::Public,
    stable: true,
    plain: true,
    run: sasl_continue,
    ..Command::BASE
};

fn sasl_continue(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let answer = login::go_on(request, call)?;
    call.reply.append_fields(answer.to_doc().as_raw());
    Ok(())
}
