//! `updateUser`: another password, other roles, other data of a user.

use espalier_value::DocBuf;

use super::prelude::*;
use crate::auth::directory::{USERS, change, with_field, with_roles};
use crate::auth::names::UserName;
use crate::auth::request::{Given, may_on_roles, may_restrict, may_revoke_any, name_argument};
use crate::auth::users::{credentials, keep_mechanisms, mechanisms};
use crate::request::EXTERNAL;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "updateUser",
    doc: "Changes a user.",
    privilege: Privilege::Asked {
        doc: "`changePassword`, `changeCustomData`, `setAuthenticationRestriction` on the database for what it changes \
              (`changeOwnPassword`, `changeOwnCustomData` for itself); for roles `grantRole` on theirs and `revokeRole` \
              on any",
        may,
    },
    writes: true,
    run: update_user,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let own = request.argument.as_str().is_some_and(|user| rights.is(&UserName::new(user, request.db)));
    let on = |any: Action, of_own: Action| {
        rights.on_database(request.db, any) || own && rights.on_database(request.db, of_own)
    };
    let sets = |name: &str| request.body.get(name).is_some();
    (!(sets("pwd") || sets("mechanisms")) || on(Action::ChangePassword, Action::ChangeOwnPassword))
        && (!sets("customData") || on(Action::ChangeCustomData, Action::ChangeOwnCustomData))
        && (!sets("roles") || may_revoke_any(rights) && may_on_roles(request, rights, Action::GrantRole))
        && may_restrict(request, rights)
        && rights.is_authenticated()
}

fn update_user(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut password, mut custom, mut digest, mut wanted) = (None, None, true, None);
    let mut given = Given::default();
    for field in request.fields("updateUser") {
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
    let user = name_argument(request, "updateUser")?;
    let (roles, restrictions) = (given.roles(request.db)?, given.restrictions("updateUser")?);
    if password.is_none() && custom.is_none() && roles.is_none() && wanted.is_none() && restrictions.is_none() {
        return Err(Error::bad_value("Must specify at least one field to update in updateUser"));
    }
    if password.is_some() && request.db == EXTERNAL {
        return Err(Error::bad_value("Cannot set the password for users defined on the '$external' database"));
    }
    let chosen = mechanisms(wanted)?;
    let secrets = password.map(|password| credentials(user, password, &chosen, digest)).transpose()?;
    let concern = WriteConcern::of(request)?;
    let name = UserName::new(user, request.db);
    change(call, &concern, |directory| {
        if let Some(roles) = &roles {
            directory.check_roles(roles)?;
        }
        let Some(stored) = directory.user(&name)? else {
            return Err(Error::new(Code::UserNotFound, format!("User {name} not found")));
        };
        let mut doc: DocBuf = stored;
        if let Some(secrets) = &secrets {
            doc = with_field(doc.as_raw(), "credentials", secrets);
        } else if wanted.is_some() {
            let left = keep_mechanisms(doc.as_raw(), &chosen)?;
            doc = with_field(doc.as_raw(), "credentials", &left);
        }
        if let Some(custom) = custom {
            doc = with_field(doc.as_raw(), "customData", custom);
        }
        if let Some(restrictions) = &restrictions {
            doc = with_field(doc.as_raw(), "authenticationRestrictions", restrictions);
        }
        if let Some(roles) = &roles {
            doc = with_roles(doc.as_raw(), roles);
        }
        directory.replace(&USERS, &doc)
    })
}
