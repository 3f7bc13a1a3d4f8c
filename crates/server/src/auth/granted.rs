//! The privileges of one user, indexed so that asking costs a few look-ups.

use std::collections::HashMap;

use super::action::{Action, ActionSet};
use super::resource::{Grant, Resource};

#[derive(Default, Debug)]
pub struct Granted {
    /// As they are shown.
    pub list: Vec<Grant>,
    cluster: ActionSet,
    any: ActionSet,
    /// `{db: "", collection: ""}`: every database but `local` and `config`, and every ordinary collection in them.
    normal: ActionSet,
    databases: HashMap<String, ActionSet>,
    /// `{db: "", collection}`.
    names: HashMap<String, ActionSet>,
    exact: HashMap<String, HashMap<String, ActionSet>>,
}

impl Granted {
    pub fn new(list: Vec<Grant>) -> Granted {
        let mut granted = Granted::default();
        for Grant { resource, actions } in &list {
            let slot = match resource {
                Resource::Cluster => &mut granted.cluster,
                Resource::Any => &mut granted.any,
                Resource::Namespace { db, collection } => match (db.is_empty(), collection.is_empty()) {
                    (true, true) => &mut granted.normal,
                    (true, false) => granted.names.entry(collection.clone()).or_default(),
                    (false, true) => granted.databases.entry(db.clone()).or_default(),
                    (false, false) => {
                        granted.exact.entry(db.clone()).or_default().entry(collection.clone()).or_default()
                    }
                },
                // There are no time series here yet whose buckets could be reached.
                Resource::Buckets { .. } => continue,
            };
            *slot = slot.with(*actions);
        }
        granted.list = list;
        granted
    }

    pub fn on_cluster(&self, action: Action) -> bool {
        self.any.contains(action) || self.cluster.contains(action)
    }

    pub fn on_database(&self, db: &str, action: Action) -> bool {
        self.any.contains(action)
            || is_normal(db) && self.normal.contains(action)
            || self.databases.get(db).is_some_and(|set| set.contains(action))
    }

    /// A privilege on a database is one on its ordinary collections; those of the system need one by name.
    pub fn on_namespace(&self, db: &str, collection: &str, action: Action) -> bool {
        let named = |set: Option<&ActionSet>| set.is_some_and(|set| set.contains(action));
        let special = collection.starts_with("system.") || db == "local" && collection.starts_with("replset.");
        self.any.contains(action)
            || !special && (is_normal(db) && self.normal.contains(action) || named(self.databases.get(db)))
            || named(self.names.get(collection))
            || named(self.exact.get(db).and_then(|collections| collections.get(collection)))
    }

    /// Whether anything at all is allowed in a database.
    pub fn in_database(&self, db: &str) -> bool {
        let some = |set: &ActionSet| !set.is_empty();
        some(&self.any)
            || is_normal(db) && some(&self.normal)
            || self.databases.get(db).is_some_and(some)
            || self.exact.get(db).is_some_and(|collections| collections.values().any(some))
    }

    /// Whether anything at all is allowed on a collection.
    pub fn in_namespace(&self, db: &str, collection: &str) -> bool {
        Action::ALL.iter().any(|(action, _)| self.on_namespace(db, collection, *action))
    }
}

/// `local` and `config` keep what the server itself needs.
fn is_normal(db: &str) -> bool {
    !matches!(db, "local" | "config")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::builtin;

    #[test]
    fn a_database_privilege_does_not_reach_system_collections() {
        let read = Granted::new(builtin::grants("readWrite", "shop"));
        assert!(read.on_namespace("shop", "orders", Action::Insert));
        assert!(read.on_namespace("shop", "system.js", Action::Find));
        assert!(!read.on_namespace("shop", "system.users", Action::Find));
        assert!(!read.on_namespace("other", "orders", Action::Find));
        assert!(!read.on_cluster(Action::ListDatabases));
        assert!(read.in_database("shop") && !read.in_database("other"));
    }

    #[test]
    fn any_database_leaves_out_local_and_config() {
        let any = Granted::new(builtin::grants("readWriteAnyDatabase", "admin"));
        assert!(any.on_namespace("shop", "orders", Action::Insert) && any.on_database("shop", Action::DbStats));
        assert!(!any.on_namespace("config", "settings", Action::Find));
        assert!(!any.on_namespace("admin", "system.users", Action::Insert));
        let root = Granted::new(builtin::grants("root", "admin"));
        assert!(root.on_namespace("admin", "system.users", Action::Find));
        assert!(root.on_cluster(Action::Shutdown));
    }
}
