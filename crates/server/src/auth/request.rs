//! What the commands on users and roles have in common: their argument, their fields, who may use them.

use espalier_value::{ArrayBuf, DocBuf, Error, RawArray, Result, ValueRef};

use super::names::RoleName;
use super::resource::Grant;
use super::rights::Rights;
use super::{Action, restrictions};
use crate::fields::{self, Field};
use crate::request::Request;

/// The argument of a command that must be a string.
pub fn name_argument<'a>(request: &Request<'a>, command: &str) -> Result<&'a str> {
    match request.argument {
        ValueRef::String(name) => Ok(name),
        other => {
            let found = other.ty().name();
            let message =
                format!("BSON field '{command}.{command}' is the wrong type '{found}', expected type 'string'");
            Err(Error::type_mismatch(message))
        }
    }
}

/// The fields that users and roles share, each as it was given.
#[derive(Default)]
pub struct Given<'a> {
    pub roles: Option<RawArray<'a>>,
    pub privileges: Option<RawArray<'a>>,
    pub restrictions: Option<RawArray<'a>>,
}

impl<'a> Given<'a> {
    /// True if the field is one of these.
    pub fn take(&mut self, field: &Field<'a, '_>) -> Result<bool> {
        match field.name() {
            "roles" => self.roles = field.array()?,
            "privileges" => self.privileges = field.array()?,
            "authenticationRestrictions" => self.restrictions = field.array()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub fn roles(&self, db: &str) -> Result<Option<Vec<RoleName>>> {
        self.roles.map(|roles| RoleName::parse_list(roles, db)).transpose()
    }

    pub fn privileges(&self, command: &str) -> Result<Option<Vec<Grant>>> {
        self.privileges.map(|list| Grant::parse_list(list, &format!("{command}.privileges"))).transpose()
    }

    pub fn restrictions(&self, command: &str) -> Result<Option<ArrayBuf>> {
        let path = format!("{command}.authenticationRestrictions");
        let docs = self.restrictions.map(|list| restrictions::parse(list, &path)).transpose()?;
        Ok(docs.map(|docs| array(&docs)))
    }
}

fn array(docs: &[DocBuf]) -> ArrayBuf {
    let mut array = ArrayBuf::new();
    docs.iter().for_each(|doc| {
        array.push(doc);
    });
    array
}

/// The one list that `grantRolesToUser` and its like take, which must not be empty.
pub fn only_list<'a>(request: &Request<'a>, command: &str, name: &str) -> Result<RawArray<'a>> {
    let mut list = None;
    for field in request.fields(command) {
        if field.name() != name {
            return Err(field.unknown());
        }
        list = field.array()?;
    }
    let list = list.ok_or_else(|| fields::missing(command, name))?;
    if list.is_empty() {
        return Err(Error::bad_value(format!("{command} command requires a non-empty \"{name}\" array")));
    }
    Ok(list)
}

/// Whether an action is allowed on the database of every role in the list.
pub fn may_on_roles(request: &Request<'_>, rights: &Rights, action: Action) -> bool {
    let Some(ValueRef::Array(roles)) = request.body.get("roles") else { return true };
    roles.iter().all(|role| match role {
        ValueRef::Document(doc) => rights.on_database(doc.get_str("db").unwrap_or(request.db), action),
        _ => rights.on_database(request.db, action),
    })
}

/// Whether an action is allowed on what every privilege in the list is about; on `admin` for what is no database.
pub fn may_on_privileges(request: &Request<'_>, rights: &Rights, action: Action) -> bool {
    let Some(ValueRef::Array(privileges)) = request.body.get("privileges") else { return true };
    privileges.iter().all(|privilege| {
        let resource = privilege.as_doc().and_then(|doc| doc.get_doc("resource"));
        let db = resource.and_then(|resource| resource.get_str("db")).filter(|db| !db.is_empty());
        rights.on_database(db.unwrap_or("admin"), action)
    })
}

/// Who sets restrictions needs an action for that.
pub fn may_restrict(request: &Request<'_>, rights: &Rights) -> bool {
    request.body.get("authenticationRestrictions").is_none()
        || rights.on_database(request.db, Action::SetAuthenticationRestriction)
}

/// Who replaces a list of roles or privileges may take away any.
pub fn may_revoke_any(rights: &Rights) -> bool {
    rights.on_database("", Action::RevokeRole)
}
