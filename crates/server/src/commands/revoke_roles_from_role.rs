//! `revokeRolesFromRole`: takes roles from a role.

use super::prelude::*;
use crate::auth::directory::{ROLES, change, with_roles};
use crate::auth::names::RoleName;
use crate::auth::request::{may_on_roles, name_argument, only_list};
use crate::auth::roles::{check_changeable, existing};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "revokeRolesFromRole",
    doc: "Takes roles from a role.",
    privilege: Privilege::Asked { doc: "`revokeRole` on the databases of the roles", may },
    writes: true,
    run: revoke_roles_from_role,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    rights.is_authenticated() && may_on_roles(request, rights, Action::RevokeRole)
}

fn revoke_roles_from_role(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let role = RoleName::new(name_argument(request, "revokeRolesFromRole")?, request.db);
    let roles = RoleName::parse_list(only_list(request, COMMAND.name, "roles")?, request.db)?;
    check_changeable(&role)?;
    let concern = WriteConcern::of(request)?;
    change(call, &concern, |directory| {
        let doc = existing(directory, &role)?;
        let mut own = RoleName::stored(doc.as_raw());
        own.retain(|role| !roles.contains(role));
        directory.replace(&ROLES, &with_roles(doc.as_raw(), &own))
    })
}
