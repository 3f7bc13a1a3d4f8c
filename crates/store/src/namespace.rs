//! `database.collection`.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use espalier_value::{Code, Error, Result};

/// A collection's full name. A command looks it up a dozen times, so its hash is computed once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Namespace {
    db: Box<str>,
    collection: Box<str>,
    hash: u64,
}

/// Another one in every process: nobody can think of names that meet.
static HASH_KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Hash for Namespace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// By name. The hash is that of the name, as it is.
pub type NamespaceMap<V> = HashMap<Namespace, V, BuildHasherDefault<AsItIs>>;

/// A hasher for what is a hash already.
#[derive(Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Longest `database.collection`, in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 255;
const DATABASE_BYTES_MAX: usize = 63;

impl Namespace {
    pub fn new(db: &str, collection: &str) -> Namespace {
        Namespace { db: db.into(), collection: collection.into(), hash: HASH_KEY.hash_one((db, collection)) }
    }

    /// Splits at the first dot.
    pub fn parse(text: &str) -> Option<Namespace> {
        let (db, collection) = text.split_once('.')?;
        (!db.is_empty() && !collection.is_empty()).then(|| Namespace::new(db, collection))
    }

    /// As [`Namespace::new`], after checking that a client may use the names.
    pub fn checked(db: &str, collection: &str) -> Result<Namespace> {
        check_database(db)?;
        let invalid = |why: &str| {
            Err(Error::new(Code::InvalidNamespace, format!("Invalid namespace specified '{db}.{collection}': {why}")))
        };
        if collection.is_empty() {
            return invalid("the collection name is empty");
        }
        if collection.contains('\0') {
            return invalid("a name may not contain a NUL byte");
        }
        if collection.starts_with('.') {
            return invalid("a collection name may not start with a dot");
        }
        if collection.contains('$') && collection != "$cmd" {
            return invalid("a collection name may not contain '$'");
        }
        if db.len() + 1 + collection.len() > NAMESPACE_BYTES_MAX {
            return invalid("the full name is longer than 255 bytes");
        }
        Ok(Namespace::new(db, collection))
    }

    pub fn db(&self) -> &str {
        &self.db
    }

    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// `system.*`, which clients may not create.
    pub fn is_system(&self) -> bool {
        self.collection.starts_with("system.")
    }
}

/// Refuses a database name that MongoDB refuses.
pub fn check_database(db: &str) -> Result<()> {
    let bad = db.is_empty() || db.len() > DATABASE_BYTES_MAX || db.contains(['/', '\\', '.', ' ', '"', '$', '\0']);
    if bad { Err(Error::new(Code::InvalidNamespace, format!("Invalid database name: '{db}'"))) } else { Ok(()) }
}

impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.db, self.collection)
    }
}
