//! `dropRole`: removes a role, also from the users and roles that have it.

use espalier_value::doc;

use super::prelude::*;
use crate::auth::directory::{ROLES, change};
use crate::auth::names::RoleName;
use crate::auth::request::name_argument;
use crate::auth::roles::check_changeable;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "dropRole",
    doc: "Drops a role.",
    privilege: Privilege::Database(&[Action::DropRole]),
    writes: true,
    run: drop_role,
    ..Command::BASE
};

fn drop_role(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("dropRole")?;
    let role = RoleName::new(name_argument(request, "dropRole")?, request.db);
    check_changeable(&role)?;
    let concern = WriteConcern::of(request)?;
    change(call, &concern, |directory| {
        if directory.delete(&ROLES, doc! { "_id": &role.id() }.as_raw())? == 0 {
            return Err(Error::new(Code::RoleNotFound, format!("Could not find role: {role}")));
        }
        directory.forget_roles(std::slice::from_ref(&role))
    })
}
