//! `grantPrivilegesToRole`: more privileges for a role.

use super::prelude::*;
use crate::auth::directory::{ROLES, change, grant_array, stored_grants, with_field};
use crate::auth::names::RoleName;
use crate::auth::request::{may_on_privileges, name_argument, only_list};
use crate::auth::resource::{Grant, merge};
use crate::auth::roles::{check_changeable, check_grants, existing};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "grantPrivilegesToRole",
    doc: "Grants privileges to a role.",
    privilege: Privilege::Asked { doc: "`grantRole` on the databases of the privileges", may },
    writes: true,
    run: grant_privileges_to_role,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    rights.is_authenticated() && may_on_privileges(request, rights, Action::GrantRole)
}

fn grant_privileges_to_role(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let role = RoleName::new(name_argument(request, "grantPrivilegesToRole")?, request.db);
    let privileges =
        Grant::parse_list(only_list(request, COMMAND.name, "privileges")?, "grantPrivilegesToRole.privileges")?;
    check_changeable(&role)?;
    check_grants(&role, &privileges)?;
    let concern = WriteConcern::of(request)?;
    change(call, &concern, |directory| {
        let doc = existing(directory, &role)?;
        let mut own = stored_grants(doc.as_raw());
        merge(&mut own, &privileges);
        // By resource, so that the order does not depend on the history.
        own.sort_by_key(|grant| format!("{:?}", grant.resource));
        directory.replace(&ROLES, &with_field(doc.as_raw(), "privileges", &grant_array(&own)))
    })
}
