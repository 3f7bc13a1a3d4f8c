//! Rules for the roles that users make: what they may have, and what may be changed.

use espalier_value::{Code, DocBuf, Error, Result};

use super::builtin;
use super::directory::Directory;
use super::names::RoleName;
use super::resource::Grant;

/// A role outside `admin` is about its own database alone.
pub fn check_grants(role: &RoleName, grants: &[Grant]) -> Result<()> {
    let elsewhere = |grant: &Grant| grant.resource.database() != Some(role.db.as_str());
    if role.db != "admin" && grants.iter().any(elsewhere) {
        let message = format!(
            "Roles on the '{}' database cannot be granted privileges that target other databases or the cluster",
            role.db
        );
        return Err(Error::new(Code::InvalidRoleModification, message));
    }
    Ok(())
}

/// Whether a role may have these: not itself, not from elsewhere, no cycle, and they must exist.
pub fn check_roles(directory: &Directory, role: &RoleName, roles: &[RoleName]) -> Result<()> {
    let invalid = |message: String| Err(Error::new(Code::InvalidRoleModification, message));
    for inner in roles {
        if inner == role {
            return invalid(format!("Cannot grant role {role} to itself."));
        }
        if role.db != "admin" && inner.db != role.db {
            let db = &role.db;
            return invalid(format!("Roles on the '{db}' database cannot be granted roles from other databases"));
        }
    }
    directory.check_roles(roles).map_err(|error| match error.code() {
        Code::RoleNotFound => {
            Error::new(Code::RoleNotFound, format!("Cannot grant roles to '{role}': {}", error.message()))
        }
        _ => error,
    })?;
    if directory.resolve(roles)?.roles.contains(role) {
        return invalid(format!("Granting roles to {role} would introduce a cycle in the role graph"));
    }
    Ok(())
}

pub fn check_changeable(role: &RoleName) -> Result<()> {
    if builtin::exists(&role.role, &role.db) {
        return Err(Error::bad_value(format!("{role} is a built-in role and cannot be modified")));
    }
    Ok(())
}

/// The document of a role that is to be changed.
pub fn existing(directory: &Directory, role: &RoleName) -> Result<DocBuf> {
    directory.role(role)?.ok_or_else(|| Error::new(Code::RoleNotFound, format!("Role {role} not found")))
}
