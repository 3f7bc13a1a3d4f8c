//! `usersInfo`: users with their roles, and on request their credentials, privileges and restrictions.

use std::sync::Arc;

use espalier_value::number::Number;
use espalier_value::{DocBuf, doc};

use super::prelude::*;
use crate::auth::directory::{Directory, USERS};
use crate::auth::names::{RoleName, UserName};
use crate::auth::users::stored_mechanisms;
use crate::parse;
use crate::reply::build;

pub(super) static COMMAND: Command = Command {
    name: "usersInfo",
    doc: "Lists the users of a database.",
    privilege: Privilege::Asked {
        doc: "`viewUser` on the databases of the users (on the cluster for all databases); any user about itself",
        may,
    },
    run: users_info,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    match Which::parse(request.argument, request.db) {
        Ok(Which::Everywhere) => rights.on_cluster(Action::ViewUser),
        Ok(Which::Database) => rights.on_database(request.db, Action::ViewUser),
        Ok(Which::Users(users)) => {
            users.iter().all(|user| rights.is(user) || rights.on_database(&user.db, Action::ViewUser))
        }
        // Not a way to ask for users: the command will say so.
        Err(_) => rights.is_authenticated(),
    }
}

enum Which {
    Everywhere,
    Database,
    Users(Vec<UserName>),
}

impl Which {
    fn parse(argument: ValueRef<'_>, db: &str) -> Result<Which> {
        match argument {
            ValueRef::Array(users) => {
                let users = users.iter().map(|user| UserName::parse(user, db));
                Ok(Which::Users(users.collect::<Result<_>>()?))
            }
            ValueRef::Document(doc) if matches!(doc.get("forAllDBs"), Some(ValueRef::Bool(true))) => {
                Ok(Which::Everywhere)
            }
            value if Number::of(value).is_some_and(|n| n.as_exact_i64() == Some(1)) => Ok(Which::Database),
            value => Ok(Which::Users(vec![UserName::parse(value, db)?])),
        }
    }
}

fn users_info(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut credentials, mut privileges, mut restrictions, mut custom, mut filter) = (false, false, false, true, None);
    for field in request.fields("usersInfo") {
        match field.name() {
            "showCredentials" => credentials = field.bool_or_number()?.unwrap_or(false),
            "showPrivileges" => privileges = field.bool_or_number()?.unwrap_or(false),
            "showAuthenticationRestrictions" => restrictions = field.bool_or_number()?.unwrap_or(false),
            "showCustomData" => custom = field.bool_or_number()?.unwrap_or(true),
            "filter" => filter = field.doc()?,
            _ => return Err(field.unknown()),
        }
    }
    let which = Which::parse(request.argument, request.db)?;
    let details = privileges || restrictions;
    if details && (filter.is_some() || !matches!(which, Which::Users(_))) {
        let message = "Privilege or restriction details require exact-match usersInfo queries";
        return Err(Error::new(Code::IllegalOperation, message));
    }
    let filter = parse::filter(filter.unwrap_or(RawDoc::EMPTY), &Default::default())?;
    let directory = Directory::open(call.server)?;
    let found = match &which {
        Which::Everywhere => directory.find(&USERS, RawDoc::EMPTY)?,
        Which::Database => directory.find(&USERS, doc! { "db": request.db }.as_raw())?,
        Which::Users(names) if names.is_empty() => {
            return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
        }
        Which::Users(names) => {
            let mut found: Vec<DocBuf> = Vec::new();
            let mut names = names.clone();
            names.sort_by_key(UserName::id);
            names.dedup();
            for name in &names {
                found.extend(directory.user(name)?);
            }
            found
        }
    };
    let context = Arc::new(call.context());
    let mut list = call.reply.array("users");
    for user in &found {
        let show = Show { credentials, restrictions, custom };
        let shown = if details { detailed(user.as_raw(), show, &directory)? } else { plain(user.as_raw(), show) };
        if filter.matches(shown.as_raw(), &context)? {
            list.push(&shown);
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Show {
    credentials: bool,
    restrictions: bool,
    custom: bool,
}

impl Show {
    fn hides(self, field: &str) -> bool {
        match field {
            "credentials" => !self.credentials,
            "authenticationRestrictions" => !self.restrictions,
            "customData" => !self.custom,
            _ => false,
        }
    }
}

fn plain(user: RawDoc<'_>, show: Show) -> DocBuf {
    build(|doc| {
        user.iter().filter(|elem| !show.hides(elem.name())).for_each(|elem| {
            doc.append_elem(elem);
        });
        crate::reply::strings(&mut doc.array("mechanisms"), stored_mechanisms(user));
    })
}

fn detailed(user: RawDoc<'_>, show: Show, directory: &Directory) -> Result<DocBuf> {
    let inherited = directory.resolve(&RoleName::stored(user))?;
    Ok(build(|doc| {
        for elem in user {
            if elem.name() == "credentials" {
                if show.credentials {
                    doc.append_elem(elem);
                }
                crate::reply::strings(&mut doc.array("mechanisms"), stored_mechanisms(user));
            } else if !show.hides(elem.name()) {
                doc.append_elem(elem);
            }
        }
        if show.restrictions && user.get("authenticationRestrictions").is_none() {
            doc.array("authenticationRestrictions");
        }
        {
            let mut roles = doc.array("inheritedRoles");
            inherited.roles.iter().for_each(|role| role.write(&mut roles));
        }
        {
            let mut privileges = doc.array("inheritedPrivileges");
            inherited.grants.iter().for_each(|grant| grant.write(&mut privileges));
        }
        {
            let mut restrictions = doc.array("inheritedAuthenticationRestrictions");
            inherited.restrictions.iter().for_each(|list| {
                restrictions.push(list);
            });
        }
    }))
}
