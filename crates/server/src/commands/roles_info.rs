//! `rolesInfo`: roles with the roles they have, and on request their privileges and restrictions.

use espalier_value::number::Number;
use espalier_value::{ArrayBuf, DocBuf, doc};

use super::prelude::*;
use crate::auth::builtin;
use crate::auth::directory::{Directory, ROLES, stored_grants};
use crate::auth::names::RoleName;
use crate::auth::resource::Grant;
use crate::reply::{DocWriter, build};

pub(super) static COMMAND: Command = Command {
    name: "rolesInfo",
    doc: "Lists the roles of a database.",
    privilege: Privilege::Asked { doc: "`viewRole` on the databases of the roles; any user for roles it has", may },
    run: roles_info,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    match Which::parse(request.argument, request.db) {
        Ok(Which::Database) => rights.on_database(request.db, Action::ViewRole),
        Ok(Which::Roles(roles)) => {
            roles.iter().all(|role| rights.has_role(role) || rights.on_database(&role.db, Action::ViewRole))
        }
        // Not a way to ask for roles: the command will say so.
        Err(_) => rights.is_authenticated(),
    }
}

enum Which {
    Database,
    Roles(Vec<RoleName>),
}

impl Which {
    fn parse(argument: ValueRef<'_>, db: &str) -> Result<Which> {
        match argument {
            ValueRef::Array(roles) => {
                let roles = roles.iter().map(|role| RoleName::parse(role, db));
                Ok(Which::Roles(roles.collect::<Result<_>>()?))
            }
            value if Number::of(value).is_some_and(|n| n.as_exact_i64() == Some(1)) => Ok(Which::Database),
            value => Ok(Which::Roles(vec![RoleName::parse(value, db)?])),
        }
    }
}

#[derive(Clone, Copy)]
struct Show {
    privileges: bool,
    restrictions: bool,
}

fn roles_info(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut show = Show { privileges: false, restrictions: false };
    let mut built_in = false;
    for field in request.fields("rolesInfo") {
        match field.name() {
            "showPrivileges" => {
                if let ValueRef::String(other) = field.value() {
                    let message = format!("rolesInfo with showPrivileges: '{other}' is not supported yet");
                    return Err(Error::new(Code::CommandNotSupported, message));
                }
                show.privileges = field.bool_or_number()?.unwrap_or(false);
            }
            "showAuthenticationRestrictions" => show.restrictions = field.bool_or_number()?.unwrap_or(false),
            "showBuiltinRoles" => built_in = field.bool_or_number()?.unwrap_or(false),
            _ => return Err(field.unknown()),
        }
    }
    let which = Which::parse(request.argument, request.db)?;
    let directory = Directory::open(call.server)?;
    let mut list = Vec::new();
    match &which {
        Which::Database => {
            for role in directory.find(&ROLES, doc! { "db": request.db }.as_raw())? {
                list.push(describe(role.as_raw(), show, true, &directory)?);
            }
            let names = builtin::names(request.db).filter(|_| built_in);
            list.extend(names.map(|role| describe_builtin(&RoleName::new(role, request.db), show, true)));
        }
        Which::Roles(names) => {
            for name in names {
                if builtin::exists(&name.role, &name.db) {
                    list.push(describe_builtin(name, show, false));
                } else if let Some(role) = directory.role(name)? {
                    list.push(describe(role.as_raw(), show, false, &directory)?);
                }
            }
        }
    }
    let mut roles = call.reply.array("roles");
    list.iter().for_each(|role| {
        roles.push(role);
    });
    Ok(())
}

/// A role that somebody made. In the list of a database `isBuiltin` stands before what is inherited, as in MongoDB.
fn describe(role: RawDoc<'_>, show: Show, listed: bool, directory: &Directory) -> Result<DocBuf> {
    let inherited = directory.resolve(&RoleName::stored(role))?;
    let own = match role.get("authenticationRestrictions") {
        Some(ValueRef::Array(list)) if !list.is_empty() => Some(ArrayBuf::from_raw(list)),
        _ => None,
    };
    Ok(build(|doc| {
        for elem in role {
            match elem.name() {
                "authenticationRestrictions" => {}
                "privileges" if !show.privileges => {}
                _ => {
                    doc.append_elem(elem);
                }
            }
        }
        if show.restrictions {
            let mut lists = doc.array("authenticationRestrictions");
            own.iter().for_each(|list| {
                lists.push(list);
            });
        }
        if listed {
            doc.append("isBuiltin", false);
        }
        {
            let mut roles = doc.array("inheritedRoles");
            inherited.roles.iter().for_each(|role| role.write(&mut roles));
        }
        if show.privileges {
            // Its own, then what its roles bring along.
            write_grants(doc, "inheritedPrivileges", &[&stored_grants(role), &inherited.grants]);
        }
        if show.restrictions {
            let mut lists = doc.array("inheritedAuthenticationRestrictions");
            own.iter().chain(&inherited.restrictions).for_each(|list| {
                lists.push(list);
            });
        }
        if !listed {
            doc.append("isBuiltin", false);
        }
    }))
}

fn describe_builtin(role: &RoleName, show: Show, listed: bool) -> DocBuf {
    let grants = builtin::grants(&role.role, &role.db);
    build(|doc| {
        if listed {
            doc.append("role", &role.role).append("db", &role.db).append("isBuiltin", true);
        } else {
            doc.append("db", &role.db).append("role", &role.role);
        }
        doc.array("roles");
        if show.privileges && !listed {
            write_grants(doc, "privileges", &[&grants]);
        }
        if show.restrictions && !listed {
            doc.array("authenticationRestrictions");
        }
        doc.array("inheritedRoles");
        if show.privileges && listed {
            write_grants(doc, "privileges", &[&grants]);
        }
        if show.privileges {
            write_grants(doc, "inheritedPrivileges", &[&grants]);
        }
        if show.restrictions {
            doc.array("inheritedAuthenticationRestrictions");
        }
        if !listed {
            doc.append("isBuiltin", true);
        }
    })
}

fn write_grants(doc: &mut DocWriter<'_>, name: &str, lists: &[&[Grant]]) {
    let mut array = doc.array(name);
    lists.iter().flat_map(|list| list.iter()).for_each(|grant| grant.write(&mut array));
}
