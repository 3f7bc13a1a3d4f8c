//! `startSession`: a new logical session.

use super::prelude::*;
use crate::sessions::Lsid;

pub(super) static COMMAND: Command = Command {
    name: "startSession",
    doc: "Begins a logical session.",
    privilege: Privilege::Authenticated,
    run: start_session,
    ..Command::BASE
};

fn start_session(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("startSession")?;
    let id = call.server.ids.uuid();
    let lsid = Lsid { id, uid: call.rights.uid() };
    call.server.sessions.touch(&lsid, call.rights.owner())?;
    call.reply.doc("id").append("id", ValueRef::Binary(4, &id));
    call.reply.append("timeoutMinutes", call.server.options.limits.session_timeout_minutes as i32);
    Ok(())
}
