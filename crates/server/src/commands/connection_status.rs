//! `connectionStatus`: who the client is authenticated as.

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "connectionStatus",
    doc: "Lists the users and roles the connection is authenticated as.",
    privilege: Privilege::Public,
    stable: true,
    run: connection_status,
    ..Command::BASE
};

fn connection_status(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut show_privileges = false;
    for field in request.fields("connectionStatus") {
        match field.name() {
            "showPrivileges" => show_privileges = field.bool()?.unwrap_or(false),
            _ => return Err(field.unknown()),
        }
    }
    let mut info = call.reply.doc("authInfo");
    info.array("authenticatedUsers");
    info.array("authenticatedUserRoles");
    if show_privileges {
        info.array("authenticatedUserPrivileges");
    }
    Ok(())
}
