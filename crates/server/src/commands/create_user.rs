//! `createUser`: a user with a password and roles.

use espalier_value::{DocBuf, ValueRef as V};

use super::prelude::*;
use crate::auth::credentials::random;
use crate::auth::directory::{USERS, change, role_array};
use crate::auth::names::UserName;
use crate::auth::request::{Given, may_on_roles, may_restrict, name_argument};
use crate::auth::users::{credentials, mechanisms};
use crate::fields;
use crate::request::EXTERNAL;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "createUser",
    doc: "Creates a user.",
    privilege: Privilege::Asked {
        doc: "`createUser` on the database, `grantRole` on those of its roles; for the first user a client on this machine",
        may,
    },
    writes: true,
    run: create_user,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    if rights.may_create_first_user() {
        return request.db == "admin";
    }
    rights.on_database(request.db, Action::CreateUser)
        && may_on_roles(request, rights, Action::GrantRole)
        && may_restrict(request, rights)
}

fn create_user(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut password, mut custom, mut digest, mut wanted) = (None, None, true, None);
    let mut given = Given::default();
    for field in request.fields("createUser") {
        match field.name() {
            "pwd" => password = field.str()?,
            "customData" => custom = field.doc()?,
            "digestPassword" => digest = field.bool_or_number()?.unwrap_or(true),
            "mechanisms" => wanted = field.array()?,
            "privileges" => return Err(field.unknown()),
            _ if given.take(&field)? => {}
            _ => return Err(field.unknown()),
        }
    }
    let user = name_argument(request, "createUser")?;
    let roles = given.roles(request.db)?.ok_or_else(|| fields::missing("createUser", "roles"))?;
    let restrictions = given.restrictions("createUser")?;
    if user.is_empty() {
        return Err(Error::bad_value("User document needs 'user' field to be non-empty"));
    }
    if request.db == "local" {
        return Err(Error::bad_value("Cannot create users in the local database"));
    }
    let mechanisms = mechanisms(wanted)?;
    let secrets = match (request.db == EXTERNAL, password) {
        (true, None) => {
            let mut external = DocBuf::new();
            external.append("external", true);
            external
        }
        (true, Some(_)) => {
            let message = "Cannot set the password for users defined on the '$external' database";
            return Err(Error::bad_value(message));
        }
        (false, Some(password)) => credentials(user, password, &mechanisms, digest)?,
        (false, None) => {
            let message = "Must provide a 'pwd' field for all user documents, except those with '$external' as the \
                           user's source db";
            return Err(Error::bad_value(message));
        }
    };
    let concern = WriteConcern::of(request)?;
    let name = UserName::new(user, request.db);
    let mut id = [0; 16];
    random(&mut id)?;
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    let mut doc = DocBuf::new();
    doc.append("_id", &name.id()).append("userId", V::Binary(4, &id)).append("user", user).append("db", request.db);
    doc.append("credentials", &secrets);
    if let Some(restrictions) = &restrictions {
        doc.append("authenticationRestrictions", restrictions);
    }
    if let Some(custom) = custom {
        doc.append("customData", custom);
    }
    doc.append("roles", &role_array(&roles));
    change(call, &concern, |directory| {
        directory.check_roles(&roles)?;
        if directory.user(&name)?.is_some() {
            return Err(Error::new(Code(51003), format!("User \"{name}\" already exists")));
        }
        directory.insert(&USERS, &doc)
    })
}
