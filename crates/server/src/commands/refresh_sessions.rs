//! `refreshSessions`: keeps logical sessions from timing out.

use super::end_sessions::session_list;
use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "refreshSessions",
    doc: "Keeps logical sessions alive.",
    privilege: Privilege::Authenticated,
    run: refresh_sessions,
    ..Command::BASE
};

fn refresh_sessions(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("refreshSessions")?;
    for session in &session_list(request)? {
        call.server.sessions.touch(&call.rights.lsid(session)?, call.rights.owner())?;
    }
    Ok(())
}
