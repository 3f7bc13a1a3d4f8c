//! `dropAllRolesFromDatabase`: removes the roles that were made in a database, also from who has them.

use espalier_value::doc;

use super::prelude::*;
use crate::auth::directory::{ROLES, change};
use crate::auth::names::RoleName;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "dropAllRolesFromDatabase",
    doc: "Drops the roles of a database.",
    privilege: Privilege::Database(&[Action::DropRole]),
    writes: true,
    run: drop_all_roles_from_database,
    ..Command::BASE
};

fn drop_all_roles_from_database(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("dropAllRolesFromDatabase")?;
    let concern = WriteConcern::of(request)?;
    let filter = doc! { "db": request.db };
    let dropped = change(call, &concern, |directory| {
        let roles = directory.find(&ROLES, filter.as_raw())?;
        let name = |role: &str| RoleName::new(role, request.db);
        let gone: Vec<RoleName> = roles.iter().filter_map(|role| role.as_raw().get_str("role")).map(name).collect();
        let dropped = directory.delete(&ROLES, filter.as_raw())?;
        directory.forget_roles(&gone)?;
        Ok(dropped)
    })?;
    call.reply.append_count("n", dropped);
    Ok(())
}
