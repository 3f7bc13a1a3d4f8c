//! The built-in roles. What each may do is recorded from MongoDB (`builtin_roles.txt`) and read once; `@` is the role's
//! database, `*` every name. `__system`, which members of a cluster use among themselves, does not exist here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::action::{Action, ActionSet};
use super::resource::{Grant, Resource};

const TABLE: &str = include_str!("builtin_roles.txt");

struct Role {
    admin_only: bool,
    grants: Vec<(&'static str, ActionSet)>,
}

static ROLES: LazyLock<BTreeMap<&'static str, Role>> = LazyLock::new(|| {
    let mut roles: BTreeMap<&str, Role> = BTreeMap::new();
    let mut current = "";
    for line in TABLE.lines() {
        if let Some((name, place)) = line.strip_prefix("role ").and_then(|rest| rest.split_once(" in ")) {
            current = name;
            roles.insert(name, Role { admin_only: place == "admin", grants: Vec::new() });
        } else if let Some((resource, actions)) = line.trim().split_once(": ")
            && let Some(role) = roles.get_mut(current)
        {
            role.grants.push((resource, actions.split(' ').filter_map(Action::parse).collect()));
        }
    }
    roles
});

/// Whether a database has a built-in role of this name.
pub fn exists(role: &str, db: &str) -> bool {
    ROLES.get(role).is_some_and(|found| db == "admin" || !found.admin_only)
}

/// The built-in roles of a database, sorted.
pub fn names(db: &str) -> impl Iterator<Item = &'static str> {
    ROLES.iter().filter(move |(_, role)| db == "admin" || !role.admin_only).map(|(name, _)| *name)
}

/// What a built-in role allows; nothing if there is none.
pub fn grants(role: &str, db: &str) -> Vec<Grant> {
    let Some(found) = ROLES.get(role).filter(|_| exists(role, db)) else { return Vec::new() };
    found.grants.iter().map(|(resource, actions)| Grant { resource: parse(resource, db), actions: *actions }).collect()
}

fn parse(resource: &str, own: &str) -> Resource {
    let name = |name: &str| match name {
        "@" => own.to_string(),
        "*" => String::new(),
        name => name.to_string(),
    };
    match resource.split_once('.') {
        Some((db, collection)) => Resource::Namespace { db: name(db), collection: name(collection) },
        None if resource == "cluster" => Resource::Cluster,
        None if resource == "any" => Resource::Any,
        None => Resource::Buckets { db: name(resource.trim_start_matches("buckets ")), collection: String::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_table_is_understood() {
        for line in TABLE.lines().filter(|line| !line.starts_with("role ")) {
            let (resource, actions) = line.trim().split_once(": ").unwrap_or_default();
            assert!(resource == "cluster" || resource == "any" || resource.contains(['.', '*']), "{line}");
            assert!(actions.split(' ').all(|action| Action::parse(action).is_some()), "{line}");
        }
        let any: Vec<_> = names("test").collect();
        assert_eq!(any, ["dbAdmin", "dbOwner", "enableSharding", "read", "readWrite", "userAdmin"]);
        assert!(exists("root", "admin") && !exists("root", "test") && !exists("__system", "admin"));
    }

    #[test]
    fn a_role_of_a_database_is_about_that_database() {
        let read = grants("read", "shop");
        assert_eq!(read[0].resource, Resource::namespace("shop", ""));
        assert!(read[0].actions.contains(Action::Find) && !read[0].actions.contains(Action::Insert));
    }
}
