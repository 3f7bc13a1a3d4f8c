//! `top`: how often and for how long each collection is used.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use espalier_query::Context;
use espalier_store::{Begin, Mode, Store};

use super::{Class, Kind, Latency};
use crate::metrics::Counter;

/// Clients can name collections that do not exist; beyond so many, only those that do are kept.
const NAMES_MAX: usize = 4_096;

#[derive(Default)]
pub(crate) struct Top {
    by_database: RwLock<Databases>,
}

type Databases = HashMap<Box<str>, HashMap<Box<str>, Arc<Usage>>>;

/// The use of one collection.
#[derive(Default)]
pub(crate) struct Usage {
    pub queries: Timed,
    pub get_more: Timed,
    pub insert: Timed,
    pub update: Timed,
    pub remove: Timed,
    pub commands: Timed,
    pub reads: Latency,
    pub writes: Latency,
    pub others: Latency,
    /// Commands that read the whole collection.
    pub scans: Counter,
}

#[derive(Default)]
pub(crate) struct Timed {
    pub count: Counter,
    pub micros: Counter,
}

impl Usage {
    fn record(&self, kind: Kind, micros: u64, scanned: bool) {
        let timed = match kind {
            Kind::Query => &self.queries,
            Kind::GetMore => &self.get_more,
            Kind::Insert => &self.insert,
            Kind::Update => &self.update,
            Kind::Remove => &self.remove,
            Kind::Read | Kind::Modify | Kind::Command => &self.commands,
        };
        timed.count.add(1);
        timed.micros.add(micros);
        match kind.class() {
            Class::Reads => self.reads.record(micros),
            Class::Writes => self.writes.record(micros),
            Class::Commands => self.others.record(micros),
        }
        self.scans.add(u64::from(scanned));
    }
}

impl Top {
    /// Counts a command. `existing` is asked for the collections there are if there are too many names.
    pub fn record(
        &self,
        db: &str,
        collection: &str,
        kind: Kind,
        micros: u64,
        scanned: bool,
        existing: impl FnOnce() -> HashSet<(Box<str>, Box<str>)>,
    ) {
        if let Some(usage) = self.get(db, collection) {
            return usage.record(kind, micros, scanned);
        }
        let is_full = self.read(|all| all.values().map(HashMap::len).sum::<usize>() >= NAMES_MAX);
        let existing = is_full.then(existing);
        let mut all = self.by_database.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(existing) = existing {
            all.retain(|db, collections| {
                collections.retain(|name, _| existing.contains(&(db.clone(), name.clone())));
                !collections.is_empty()
            });
            if !existing.contains(&(db.into(), collection.into())) {
                return;
            }
        }
        let usage = all.entry(db.into()).or_default().entry(collection.into()).or_default();
        usage.record(kind, micros, scanned);
    }

    fn read<T>(&self, look: impl FnOnce(&Databases) -> T) -> T {
        look(&self.by_database.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn get(&self, db: &str, collection: &str) -> Option<Arc<Usage>> {
        self.read(|all| all.get(db)?.get(collection).cloned())
    }

    /// Forgets a collection that is gone; without a name, the whole database.
    pub fn forget(&self, db: &str, collection: Option<&str>) {
        let mut all = self.by_database.write().unwrap_or_else(PoisonError::into_inner);
        match collection {
            None => {
                all.remove(db);
            }
            Some(collection) => {
                if let Some(collections) = all.get_mut(db) {
                    collections.remove(collection);
                }
            }
        }
    }
}

/// Every collection of the store. What cannot be asked for is nothing.
pub(super) fn existing(store: &dyn Store) -> HashSet<(Box<str>, Box<str>)> {
    let context = Arc::new(Context::default());
    let mut found = HashSet::new();
    let Ok(transaction) = store.begin(Begin { mode: Mode::Auto, want_changes: false, raw: true, context }) else {
        return found;
    };
    for database in transaction.databases().unwrap_or_default() {
        for collection in transaction.collections(&database.name).unwrap_or_default() {
            found.insert((database.name.as_str().into(), collection.name.as_str().into()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn made_up_names_do_not_crowd_out_collections() {
        let top = Top::default();
        let existing = || HashSet::from([("db".into(), "real".into())]);
        top.record("db", "real", Kind::Query, 5, true, existing);
        for i in 0..2 * NAMES_MAX {
            top.record("db", &format!("made-up-{i}"), Kind::Query, 5, false, existing);
        }
        assert!(top.read(|all| all.values().map(HashMap::len).sum::<usize>()) <= NAMES_MAX);
        top.record("db", "real", Kind::Insert, 7, false, existing);
        let real = top.get("db", "real").unwrap();
        assert_eq!((real.queries.count.get(), real.insert.micros.get(), real.scans.get()), (1, 7, 1));
        top.forget("db", Some("real"));
        assert!(top.get("db", "real").is_none());
    }
}
