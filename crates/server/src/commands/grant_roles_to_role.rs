//! `grantRolesToRole`: more roles for a role.

use super::prelude::*;
use crate::auth::directory::{ROLES, change, with_roles};
use crate::auth::names::RoleName;
use crate::auth::request::{may_on_roles, name_argument, only_list};
use crate::auth::roles::{check_changeable, check_roles, existing};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "grantRolesToRole",
    doc: "Grants roles to a role.",
    privilege: Privilege::Asked { doc: "`grantRole` on the databases of the roles", may },
    writes: true,
    run: grant_roles_to_role,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    rights.is_authenticated() && may_on_roles(request, rights, Action::GrantRole)
}

fn grant_roles_to_role(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let role = RoleName::new(name_argument(request, "grantRolesToRole")?, request.db);
    let roles = RoleName::parse_list(only_list(request, COMMAND.name, "roles")?, request.db)?;
    check_changeable(&role)?;
    let concern = WriteConcern::of(request)?;
    change(call, &concern, |directory| {
        let doc = existing(directory, &role)?;
        check_roles(directory, &role, &roles)?;
        let mut own = RoleName::stored(doc.as_raw());
        for role in &roles {
            if !own.contains(role) {
                own.push(role.clone());
            }
        }
        directory.replace(&ROLES, &with_roles(doc.as_raw(), &own))
    })
}
