//! `killAllSessions`: ends every session. There are no users to choose by yet.

use super::kill_sessions::kill_all;
use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "killAllSessions",
    aliases: &["killAllSessionsByPattern"],
    doc: "Ends the logical sessions of all users.",
    privilege: Privilege::Cluster(&[Action::KillAnySession]),
    run: kill_all_sessions,
    ..Command::BASE
};

fn kill_all_sessions(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("killAllSessions")?;
    let name = request.name;
    let ValueRef::Array(users) = request.argument else {
        let found = request.argument.ty().name();
        let message = format!("BSON field '{name}.{name}' is the wrong type '{found}', expected type 'array'");
        return Err(Error::type_mismatch(message));
    };
    if let Some(wrong) = users.elems().find(|elem| !matches!(elem.value(), ValueRef::Document(_))) {
        let (at, found) = (wrong.name(), wrong.ty().name());
        let message = format!("BSON field '{name}.{name}.{at}' is the wrong type '{found}', expected type 'object'");
        return Err(Error::type_mismatch(message));
    }
    kill_all(call);
    Ok(())
}
