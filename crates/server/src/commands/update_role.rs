//! `updateRole`: other privileges, roles or restrictions of a role.

use super::prelude::*;
use crate::auth::builtin;
use crate::auth::directory::{ROLES, change, grant_array, with_field, with_roles, without_field};
use crate::auth::names::RoleName;
use crate::auth::request::{Given, may_on_privileges, may_on_roles, may_restrict, may_revoke_any, name_argument};
use crate::auth::resource::merge;
use crate::auth::roles::{check_grants, check_roles};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "updateRole",
    doc: "Changes a role.",
    privilege: Privilege::Asked {
        doc: "`revokeRole` on any database, `grantRole` on those of its new roles and privileges",
        may,
    },
    writes: true,
    run: update_role,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    may_revoke_any(rights)
        && may_on_roles(request, rights, Action::GrantRole)
        && may_on_privileges(request, rights, Action::GrantRole)
        && may_restrict(request, rights)
}

fn update_role(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut given = Given::default();
    for field in request.fields("updateRole") {
        if !given.take(&field)? {
            return Err(field.unknown());
        }
    }
    let role = RoleName::new(name_argument(request, "updateRole")?, request.db);
    let privileges = given.privileges("updateRole")?;
    let (roles, restrictions) = (given.roles(request.db)?, given.restrictions("updateRole")?);
    if privileges.is_none() && roles.is_none() && restrictions.is_none() {
        return Err(Error::bad_value("Must specify at least one field to update in updateRole"));
    }
    if builtin::exists(&role.role, &role.db) {
        return Err(Error::new(Code::RoleNotFound, format!("Role {role} not found")));
    }
    let mut merged = Vec::new();
    if let Some(privileges) = &privileges {
        check_grants(&role, privileges)?;
        merge(&mut merged, privileges);
    }
    let concern = WriteConcern::of(request)?;
    change(call, &concern, |directory| {
        let Some(mut doc) = directory.role(&role)? else {
            return Err(Error::new(Code::RoleNotFound, format!("Could not find role: {role}")));
        };
        if privileges.is_some() {
            doc = with_field(doc.as_raw(), "privileges", &grant_array(&merged));
        }
        if let Some(roles) = &roles {
            check_roles(directory, &role, roles)?;
            doc = with_roles(doc.as_raw(), roles);
        }
        match &restrictions {
            Some(list) if list.is_empty() => doc = without_field(doc.as_raw(), "authenticationRestrictions"),
            Some(list) => doc = with_field(doc.as_raw(), "authenticationRestrictions", list),
            None => {}
        }
        directory.replace(&ROLES, &doc)
    })
}
