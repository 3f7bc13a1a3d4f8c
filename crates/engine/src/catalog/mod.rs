//! The catalog: which collections and indexes there are. Kept in memory as an immutable value that every transaction
//! captures together with its snapshot, and in the store as one BSON entry a collection.
//!
//! Invariant: the catalog a transaction works with is the one its snapshot holds. A write guards its collection's
//! entry, so that a write planned before an index appeared conflicts with the index's creation and is done again.

pub mod persist;
mod writers;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use espalier_query::Filter;
use espalier_store::{CollectionInfo, CollectionOptions, IndexSpec, Layer, Namespace, NamespaceMap};
use espalier_value::Result;

use crate::layout::{self, RecordId};
use crate::past;
pub use writers::{Writers, Writing};

/// All collections at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    collections: NamespaceMap<Arc<Collection>>,
    /// Layers that answer for names of which there is no collection; few, if any.
    naming: Vec<(Namespace, Layer)>,
    /// In the catalog of a time that has been: that time, and the names that had another collection then than now, or
    /// one of the two only.
    changed: Option<(u64, HashSet<Namespace>)>,
}

/// A collection as it stands; replaced as a whole when its options or indexes change.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Also the tree of its records.
    pub id: u64,
    pub ns: Namespace,
    pub uuid: [u8; 16],
    pub options: CollectionOptions,
    pub validator: Option<Arc<Filter>>,
    /// The `_id` index is the first.
    pub indexes: Vec<Arc<Index>>,
    /// What changes without the catalog changing.
    pub live: Arc<Live>,
}

/// Running figures of a collection, shared by all versions of it.
#[derive(Debug, Default)]
pub struct Live {
    next_record: AtomicU64,
    /// Held while a commit that changes them is made, so that the stored counts follow the order of commits.
    pub counts: Mutex<Counts>,
    /// Writes outside a transaction that are under way.
    pub writers: Writers,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub documents: i64,
    pub bytes: i64,
}

#[derive(Debug)]
pub struct Index {
    /// Also the tree of its entries.
    pub id: u64,
    pub spec: IndexSpec,
    multikey: Arc<Multikey>,
    pub building: bool,
    pub accesses: Arc<AtomicU64>,
}

/// A bit for each part of the key that led through an array in some document; shared by all versions of an index.
#[derive(Debug, Default)]
struct Multikey {
    /// What plans go by: set before the entries are committed, so that no reader of theirs can miss it.
    seen: AtomicU64,
    /// What the catalog entry in the store says.
    stored: AtomicU64,
}

impl Catalog {
    pub fn get(&self, ns: &Namespace) -> Option<&Arc<Collection>> {
        self.collections.get(ns)
    }

    /// Refuses a name whose collection is not the one that it was at the time of this catalog.
    pub fn check(&self, ns: &Namespace) -> Result<()> {
        match &self.changed {
            Some((time, names)) if names.contains(ns) => Err(past::unavailable(*time)),
            _ => Ok(()),
        }
    }

    pub fn set_changed(&mut self, time: u64, names: HashSet<Namespace>) {
        self.changed = Some((time, names));
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.collections.values()
    }

    pub fn len(&self) -> usize {
        self.collections.len()
    }

    pub fn in_database<'c>(&'c self, db: &'c str) -> impl Iterator<Item = &'c Arc<Collection>> {
        self.collections.values().filter(move |c| c.ns.db() == db)
    }

    pub fn put(&mut self, collection: Arc<Collection>) {
        self.naming.retain(|(ns, _)| *ns != collection.ns);
        if let Some(layer) = collection.options.layer.as_ref().filter(|layer| layer.has_names()) {
            self.naming.push((collection.ns.clone(), layer.clone()));
        }
        self.collections.insert(collection.ns.clone(), collection);
    }

    /// The layer that has to do with a name: the collection's, or one that answers for the name if there is none.
    pub fn layer(&self, ns: &Namespace) -> Option<&Layer> {
        match self.collections.get(ns) {
            Some(collection) => collection.options.layer.as_ref(),
            None => {
                let mut of_database = self.naming.iter().filter(|(of, _)| of.db() == ns.db());
                of_database.find(|(_, layer)| layer.answers_for(ns.collection()).is_some()).map(|(_, layer)| layer)
            }
        }
    }

    pub fn remove(&mut self, ns: &Namespace) {
        self.naming.retain(|(of, _)| of != ns);
        self.collections.remove(ns);
    }
}

impl Collection {
    pub fn info(&self) -> CollectionInfo {
        CollectionInfo { name: self.ns.collection().to_string(), uuid: self.uuid, options: self.options.clone() }
    }

    pub fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|i| i.spec.name == name)
    }

    /// The entry that every write to this collection guards.
    pub fn guard_key(&self) -> [u8; 16] {
        layout::entry_key(layout::CATALOG, self.id)
    }

    pub fn counts_key(&self) -> [u8; 16] {
        layout::entry_key(layout::COUNTS, self.id)
    }

    pub fn record_key(&self, record: RecordId) -> [u8; 16] {
        layout::record_key(self.id, record)
    }
}

impl Live {
    pub fn new(next_record: RecordId, counts: Counts) -> Live {
        Live { next_record: AtomicU64::new(next_record), counts: Mutex::new(counts), writers: Writers::default() }
    }

    /// A record id nobody else gets.
    pub fn take_record(&self) -> RecordId {
        self.take_records(1)
    }

    /// The first of some consecutive record ids that nobody else gets.
    pub fn take_records(&self, count: u64) -> RecordId {
        self.next_record.fetch_add(count, Ordering::Relaxed)
    }
}

impl Index {
    pub fn new(id: u64, spec: IndexSpec, multikey: u64, building: bool) -> Index {
        let bits = Multikey { seen: AtomicU64::new(multikey), stored: AtomicU64::new(multikey) };
        Index { id, spec, multikey: Arc::new(bits), building, accesses: Arc::default() }
    }

    /// The same index in another state.
    pub fn with(&self, spec: IndexSpec, building: bool) -> Index {
        Index { id: self.id, spec, multikey: self.multikey.clone(), building, accesses: self.accesses.clone() }
    }

    pub fn multikey(&self) -> u64 {
        self.multikey.seen.load(Ordering::Acquire)
    }

    /// Notes parts that lead through arrays; true if the store does not know yet, so that the commit must say so.
    pub fn note_multikey(&self, bits: u64) -> bool {
        if bits == 0 {
            return false;
        }
        self.multikey.seen.fetch_or(bits, Ordering::AcqRel);
        self.multikey.stored.load(Ordering::Acquire) & bits != bits
    }

    /// After a commit of the catalog entry.
    pub fn stored_multikey(&self, bits: u64) {
        self.multikey.stored.fetch_or(bits, Ordering::AcqRel);
    }

    pub fn is_usable(&self) -> bool {
        !self.building && !self.spec.hidden
    }
}

impl Counts {
    pub fn plus(self, other: Counts) -> Counts {
        Counts { documents: self.documents + other.documents, bytes: self.bytes + other.bytes }
    }

    pub fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..8].copy_from_slice(&self.documents.to_be_bytes());
        out[8..].copy_from_slice(&self.bytes.to_be_bytes());
        out
    }

    pub fn from_bytes(bytes: &[u8]) -> Counts {
        let half = |b: &[u8]| b.first_chunk::<8>().map_or(0, |b| i64::from_be_bytes(*b));
        Counts { documents: half(bytes), bytes: half(bytes.get(8..).unwrap_or_default()) }
    }
}
