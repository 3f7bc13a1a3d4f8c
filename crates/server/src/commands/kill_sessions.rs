//! `killSessions`: ends logical sessions with their cursors and running commands.

use super::end_sessions::session_list;
use super::prelude::*;
use crate::sessions::Lsid;

pub(super) static COMMAND: Command = Command {
    name: "killSessions",
    doc: "Ends logical sessions and what they are doing.",
    privilege: Privilege::Authenticated,
    run: kill_sessions,
    ..Command::BASE
};

fn kill_sessions(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("killSessions")?;
    let sessions = session_list(request)?;
    let rights = &call.rights;
    let wanted = sessions.iter().map(|session| rights.lsid_or(session, Action::KillAnySession));
    let wanted: Vec<Lsid> = wanted.collect::<Result<_>>()?;
    // As in MongoDB, an empty list means all of one's own.
    let own = rights.uid();
    kill(call, |lsid| if wanted.is_empty() { lsid.uid == own } else { wanted.contains(lsid) });
    Ok(())
}

/// Ends the sessions that `which` says yes to, but for the one that asks.
pub(super) fn kill(call: &Call<'_>, which: impl Fn(&Lsid) -> bool) {
    let own = call.client.operation().session;
    for client in call.server.clients.all() {
        let operation = client.operation();
        if operation.active && operation.session != own && operation.session.as_ref().is_some_and(&which) {
            operation.interrupt.raise(Code::Interrupted);
        }
    }
    let sessions = call.server.sessions.list();
    for lsid in sessions.iter().map(|session| &session.lsid).filter(|lsid| Some(**lsid) != own && which(lsid)) {
        call.server.end_session(lsid);
    }
    call.server.wake_all();
}
