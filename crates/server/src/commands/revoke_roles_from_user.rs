//! `revokeRolesFromUser`: takes roles from a user.

use super::prelude::*;
use crate::auth::directory::{USERS, change, with_roles};
use crate::auth::names::{RoleName, UserName};
use crate::auth::request::{may_on_roles, name_argument, only_list};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "revokeRolesFromUser",
    doc: "Takes roles from a user.",
    privilege: Privilege::Asked { doc: "`revokeRole` on the databases of the roles", may },
    writes: true,
    run: revoke_roles_from_user,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    rights.is_authenticated() && may_on_roles(request, rights, Action::RevokeRole)
}

fn revoke_roles_from_user(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let name = UserName::new(name_argument(request, "revokeRolesFromUser")?, request.db);
    let roles = RoleName::parse_list(only_list(request, "revokeRolesFromUser", "roles")?, request.db)?;
    let concern = WriteConcern::of(request)?;
    change(call, &concern, |directory| {
        let Some(doc) = directory.user(&name)? else {
            let message = format!("Could not find user \"{}\" for db \"{}\"", name.user, name.db);
            return Err(Error::new(Code::UserNotFound, message));
        };
        directory.check_roles(&roles)?;
        let mut own = RoleName::stored(doc.as_raw());
        own.retain(|role| !roles.contains(role));
        directory.replace(&USERS, &with_roles(doc.as_raw(), &own))
    })
}
