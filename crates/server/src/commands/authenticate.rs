//! `authenticate`: logging in with the certificate that the client showed when it connected.

use super::prelude::*;
use crate::auth::x509::{self, Authenticate};

pub(super) static COMMAND: Command = Command {
    name: "authenticate",
    doc: "Authenticates with a certificate (MONGODB-X509).",
    privilege: Privilege::Public,
    stable: true,
    plain: true,
    run: authenticate,
    ..Command::BASE
};

fn authenticate(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let wanted = Authenticate::of(request)?;
    let answer = x509::authenticate(&wanted, request.db, call)?;
    call.reply.append_fields(answer.as_raw());
    Ok(())
}
