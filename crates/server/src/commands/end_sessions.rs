//! `endSessions`: what drivers send when they close, so that their sessions need not wait for the timeout.

use super::prelude::*;
use crate::generic::{AskedSession, parse_session};
use crate::sessions::Lsid;

pub(super) static COMMAND: Command = Command {
    name: "endSessions",
    doc: "Ends logical sessions.",
    privilege: Privilege::Authenticated,
    stable: true,
    writes: true,
    run: end_sessions,
    ..Command::BASE
};

fn end_sessions(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("endSessions")?;
    let sessions = session_list(request)?;
    let sessions: Vec<Lsid> = sessions.iter().map(|session| call.rights.lsid(session)).collect::<Result<_>>()?;
    sessions.iter().for_each(|lsid| call.server.end_session(lsid));
    Ok(())
}

/// The argument as a list of session ids.
pub(super) fn session_list(request: &Request<'_>) -> Result<Vec<AskedSession>> {
    let name = request.name;
    let ValueRef::Array(list) = request.argument else {
        let found = request.argument.ty().name();
        let message = format!("BSON field '{name}.{name}' is the wrong type '{found}', expected type 'array'");
        return Err(Error::type_mismatch(message));
    };
    let parent = format!("{name}.{name}");
    list.iter()
        .map(|value| match value {
            ValueRef::Document(doc) => parse_session(doc, &parent),
            other => Err(Error::type_mismatch(format!(
                "BSON field '{parent}' is the wrong type '{}', expected type 'object'",
                other.ty().name()
            ))),
        })
        .collect()
}
