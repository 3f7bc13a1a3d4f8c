//! `connectionStatus`: who the client is authenticated as, and what it may do.

use super::prelude::*;
use crate::auth::resource::merge;

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
    let rights = call.rights.clone();
    let mut info = call.reply.doc("authInfo");
    {
        let mut users = info.array("authenticatedUsers");
        for user in rights.users() {
            users.push_doc().append("user", &user.name.user).append("db", &user.name.db);
        }
    }
    {
        let mut roles = info.array("authenticatedUserRoles");
        let mut seen = Vec::new();
        for role in rights.users().flat_map(|user| &user.roles) {
            if !seen.contains(&role) {
                role.write(&mut roles);
                seen.push(role);
            }
        }
    }
    if show_privileges {
        let mut all = Vec::new();
        rights.users().for_each(|user| merge(&mut all, &user.granted.list));
        let mut privileges = info.array("authenticatedUserPrivileges");
        all.iter().for_each(|grant| grant.write(&mut privileges));
    }
    Ok(())
}
