//! `killSessions`: ends logical sessions with their cursors and running commands.

use super::end_sessions::session_list;
use super::prelude::*;
use crate::generic::SessionId;

pub(super) static COMMAND: Command = Command {
    name: "killSessions",
    doc: "Ends logical sessions and what they are doing.",
    privilege: Privilege::Authenticated,
    run: kill_sessions,
    ..Command::BASE
};

fn kill_sessions(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("killSessions")?;
    let ids = session_list(request)?;
    // As in MongoDB, an empty list means all.
    let own = |id: &SessionId| call.server.sessions.belongs_to(id, call.rights.owner());
    kill(call, |id| (ids.is_empty() || ids.contains(id)) && own(id));
    Ok(())
}

/// Ends every session but the one that asks.
pub(super) fn kill_all(call: &Call<'_>) {
    kill(call, |_| true);
}

fn kill(call: &Call<'_>, which: impl Fn(&SessionId) -> bool) {
    let own = call.client.operation().session;
    for client in call.server.clients.all() {
        let operation = client.operation();
        if operation.active && operation.session != own && operation.session.as_ref().is_some_and(&which) {
            operation.interrupt.raise(Code::Interrupted);
        }
    }
    for id in call.server.sessions.ids().iter().filter(|id| Some(**id) != own && which(id)) {
        call.server.cursors.kill_session(id);
        call.server.end_session(id);
    }
    call.server.notifier.wake_all();
}
