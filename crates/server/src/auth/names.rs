//! Names of users and roles: a name and the database it belongs to.

use espalier_value::{Error, RawArray, RawDoc, Result, ValueRef};

use crate::fields::{fields, missing};
use crate::reply::ArrayWriter;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct UserName {
    pub user: String,
    pub db: String,
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RoleName {
    pub role: String,
    pub db: String,
}

impl UserName {
    pub fn new(user: &str, db: &str) -> UserName {
        UserName { user: user.into(), db: db.into() }
    }

    /// The `_id` of its document.
    pub fn id(&self) -> String {
        format!("{}.{}", self.db, self.user)
    }

    /// A command's `{user, db}`, and nothing else.
    pub fn parse_strict(doc: RawDoc<'_>, parent: &str) -> Result<UserName> {
        let (mut user, mut db) = (None, None);
        for field in fields(doc, parent)? {
            match field.name() {
                "user" => user = field.str()?,
                "db" => db = field.str()?,
                _ => return Err(field.unknown()),
            }
        }
        let user = user.ok_or_else(|| missing(parent, "user"))?;
        let db = db.ok_or_else(|| missing(parent, "db"))?;
        Ok(UserName::new(user, db))
    }

    /// `usersInfo` and friends take a string or `{user, db}`.
    pub fn parse(value: ValueRef<'_>, db: &str) -> Result<UserName> {
        let (user, db) = parse(value, db, "UserName", "user")?;
        Ok(UserName { user, db })
    }
}

impl RoleName {
    pub fn new(role: &str, db: &str) -> RoleName {
        RoleName { role: role.into(), db: db.into() }
    }

    pub fn id(&self) -> String {
        format!("{}.{}", self.db, self.role)
    }

    /// `rolesInfo` takes a string or `{role, db}`.
    pub fn parse(value: ValueRef<'_>, db: &str) -> Result<RoleName> {
        let (role, db) = parse(value, db, "RoleName", "role")?;
        Ok(RoleName { role, db })
    }

    /// The `roles` of a command, each once.
    pub fn parse_list(array: RawArray<'_>, db: &str) -> Result<Vec<RoleName>> {
        let mut list = Vec::new();
        for value in array.iter() {
            let role = match value {
                ValueRef::String(role) => RoleName::new(role, db),
                ValueRef::Document(doc) => {
                    let part = |name: &str| {
                        let found = doc.get_str(name);
                        found.ok_or_else(|| Error::bad_value(format!("RoleName must contain a field named: {name}")))
                    };
                    RoleName::new(part("role")?, part("db")?)
                }
                _ => return Err(Error::bad_value("Role name must be either a document or string")),
            };
            if !list.contains(&role) {
                list.push(role);
            }
        }
        Ok(list)
    }

    /// The `roles` of a stored document; what is no role is left out.
    pub fn stored(doc: RawDoc<'_>) -> Vec<RoleName> {
        let roles = doc.get("roles").and_then(ValueRef::as_array).into_iter().flat_map(RawArray::iter);
        let role = |doc: RawDoc<'_>| Some(RoleName::new(doc.get_str("role")?, doc.get_str("db")?));
        roles.filter_map(ValueRef::as_doc).filter_map(role).collect()
    }

    pub fn write(&self, out: &mut ArrayWriter<'_>) {
        out.push_doc().append("role", &self.role).append("db", &self.db);
    }
}

fn parse(value: ValueRef<'_>, db: &str, kind: &str, part: &str) -> Result<(String, String)> {
    match value {
        ValueRef::String(name) => Ok((name.into(), db.into())),
        ValueRef::Document(doc) => {
            if let Some(elem) = doc.iter().find(|elem| elem.name() != part && elem.name() != "db") {
                let message = format!("{kind} contains an unknown field named: '{}", elem.name());
                return Err(Error::bad_value(message));
            }
            let text = |name: &str| {
                let found = doc.get_str(name);
                found.ok_or_else(|| Error::bad_value(format!("{kind} must contain a field named: {name}")))
            };
            Ok((text(part)?.into(), text("db")?.into()))
        }
        _ => Err(Error::bad_value(format!("{kind} must be either a string or an object"))),
    }
}

impl std::fmt::Display for UserName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.user, self.db)
    }
}

impl std::fmt::Display for RoleName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.role, self.db)
    }
}
