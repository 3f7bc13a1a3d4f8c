//! `createRole`: a role with privileges and other roles.

use espalier_value::DocBuf;

use super::prelude::*;
use crate::auth::builtin;
use crate::auth::directory::{ROLES, change, grant_array, role_array};
use crate::auth::names::RoleName;
use crate::auth::request::{Given, may_on_privileges, may_on_roles, may_restrict, name_argument};
use crate::auth::resource::merge;
use crate::auth::roles::{check_grants, check_roles};
use crate::fields;
use crate::request::EXTERNAL;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "createRole",
    doc: "Creates a role.",
    privilege: Privilege::Asked {
        doc: "`createRole` on the database, `grantRole` on those of its roles and privileges",
        may,
    },
    writes: true,
    run: create_role,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    rights.on_database(request.db, Action::CreateRole)
        && may_on_roles(request, rights, Action::GrantRole)
        && may_on_privileges(request, rights, Action::GrantRole)
        && may_restrict(request, rights)
}

fn create_role(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut given = Given::default();
    for field in request.fields("createRole") {
        if !given.take(&field)? {
            return Err(field.unknown());
        }
    }
    let role = RoleName::new(name_argument(request, "createRole")?, request.db);
    let privileges = given.privileges("createRole")?.ok_or_else(|| fields::missing("createRole", "privileges"))?;
    let roles = given.roles(request.db)?.ok_or_else(|| fields::missing("createRole", "roles"))?;
    let restrictions = given.restrictions("createRole")?;
    if role.role.is_empty() {
        return Err(Error::bad_value("Role name must be non-empty"));
    }
    if role.db == "local" || role.db == EXTERNAL {
        return Err(Error::bad_value(format!("Cannot create roles in the {} database", role.db)));
    }
    if builtin::exists(&role.role, &role.db) || role.role == "__system" {
        return Err(Error::bad_value("Cannot create roles with the same name as a built-in role"));
    }
    check_grants(&role, &privileges)?;
    let mut merged = Vec::new();
    merge(&mut merged, &privileges);
    let concern = WriteConcern::of(request)?;
    let mut doc = DocBuf::new();
    doc.append("_id", &role.id()).append("role", &role.role).append("db", &role.db);
    doc.append("privileges", &grant_array(&merged)).append("roles", &role_array(&roles));
    if let Some(restrictions) = restrictions.filter(|list| !list.is_empty()) {
        doc.append("authenticationRestrictions", &restrictions);
    }
    change(call, &concern, |directory| {
        check_roles(directory, &role, &roles)?;
        if directory.role(&role)?.is_some() {
            return Err(Error::new(Code(51002), format!("Role \"{role}\" already exists")));
        }
        directory.insert(&ROLES, &doc)
    })
}
