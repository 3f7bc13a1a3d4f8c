//! `revokePrivilegesFromRole`: takes privileges from a role.

use super::prelude::*;
use crate::auth::directory::{ROLES, change, grant_array, stored_grants, with_field};
use crate::auth::names::RoleName;
use crate::auth::request::{may_on_privileges, name_argument, only_list};
use crate::auth::resource::Grant;
use crate::auth::roles::{check_changeable, existing};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "revokePrivilegesFromRole",
    doc: "Takes privileges from a role.",
    privilege: Privilege::Asked { doc: "`revokeRole` on the databases of the privileges", may },
    writes: true,
    run: revoke_privileges_from_role,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    rights.is_authenticated() && may_on_privileges(request, rights, Action::RevokeRole)
}

fn revoke_privileges_from_role(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let role = RoleName::new(name_argument(request, "revokePrivilegesFromRole")?, request.db);
    let privileges =
        Grant::parse_list(only_list(request, COMMAND.name, "privileges")?, "revokePrivilegesFromRole.privileges")?;
    check_changeable(&role)?;
    let concern = WriteConcern::of(request)?;
    change(call, &concern, |directory| {
        let doc = existing(directory, &role)?;
        let mut own = stored_grants(doc.as_raw());
        for gone in &privileges {
            for grant in own.iter_mut().filter(|grant| grant.resource == gone.resource) {
                grant.actions = grant.actions.without(gone.actions);
            }
        }
        own.retain(|grant| !grant.actions.is_empty());
        directory.replace(&ROLES, &with_field(doc.as_raw(), "privileges", &grant_array(&own)))
    })
}
