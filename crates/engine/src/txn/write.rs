//! Writing one document with its index entries into a batch.

use std::cell::Cell;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use espalier_kv::{Batch, Relative, Snapshot};
use espalier_query::update::Description;
use espalier_store::{Change, Happening};
use espalier_value::{DocBuf, RawDoc, Result};

use super::claims::Gate;
use super::keys::{check_keys, duplicate_key, id_of, index_keys};
use super::untouched::Untouched;
use super::{Delta, Deltas};
use crate::catalog::{Collection, Counts, Index};
use crate::error::kv;
use crate::history::Notes;
use crate::index::entry::split;
use crate::index::{Entry, Keys};
use crate::layout::{RecordId, record_at_start};
use crate::retry::Record;

/// Writes that will be committed together.
#[derive(Default)]
pub struct Writes {
    batch: Batch,
    deltas: Deltas,
    changes: Vec<Change>,
    /// What change streams will be told.
    pub notes: Notes,
    /// Keys of unique indexes that this batch itself adds or removes.
    added: KeySet,
    removed: KeySet,
    pub want_changes: bool,
    /// For a transaction that reads its own writes.
    pub is_read: bool,
    /// How it gets along with others who write the same keys.
    pub gate: Gate,
    /// Bytes of one index entry.
    pub key_bytes_max: usize,
}

/// Keys of our own making: a plain multiplicative hash is good enough, and a client cannot make a commit so large
/// that collisions would matter.
type KeySet = HashSet<Vec<u8>, BuildHasherDefault<KeyHasher>>;

#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x517C_C1B7_2722_0A95);
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

thread_local! {
    /// A batch's memory is used again by the next commit of the thread: fresh pages are dear.
    static SPARE: Cell<Option<Batch>> = const { Cell::new(None) };
}

/// Most memory a thread keeps for its next batch.
const SPARE_BYTES_MAX: usize = 8 << 20;

/// Keeps a batch's memory for the next one.
pub fn recycle(mut batch: Batch) {
    if batch.capacity_bytes() <= SPARE_BYTES_MAX {
        batch.clear();
        SPARE.set(Some(batch));
    }
}

impl Writes {
    pub fn new() -> Writes {
        Writes::default().with_memory()
    }

    /// The same, with the memory of an earlier batch if it has none yet.
    pub fn with_memory(mut self) -> Writes {
        if self.batch.capacity_bytes() == 0
            && self.batch.is_empty()
            && let Some(spare) = SPARE.take()
        {
            self.batch = spare;
        }
        self
    }

    /// The same as far as counts go, for one that only reads.
    pub fn counts_only(&self) -> Writes {
        let deltas = self
            .deltas
            .iter()
            .map(|(id, delta)| (*id, Delta { counts: delta.counts, ..Delta::of(delta.collection.clone()) }));
        Writes { deltas: deltas.collect(), ..Writes::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    pub fn len_bytes(&self) -> usize {
        self.batch.len_bytes()
    }

    /// The changes noted so far.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Makes room for documents of so many bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.batch.reserve(bytes);
    }

    /// The claims are to be held until the commit is done.
    pub fn into_parts(mut self) -> (Batch, Deltas, Vec<Change>, Gate) {
        self.notes.finish(&mut self.batch);
        (self.batch, self.deltas, self.changes, self.gate)
    }

    /// A change of the catalog that is part of this batch.
    pub fn tell(&mut self, tell: impl FnOnce(&mut Batch)) {
        self.notes.prepare(&mut self.batch);
        tell(&mut self.batch);
    }

    /// An event that a layer above announces.
    pub fn announce(&mut self, event: &Happening, uuid: Option<[u8; 16]>) {
        self.notes.announced(&mut self.batch, event, uuid);
    }

    /// How far it is written, for [`Writes::since`].
    pub fn position(&self) -> usize {
        self.batch.position()
    }

    /// What was written since a position.
    pub fn since(&self, position: usize) -> impl Iterator<Item = espalier_kv::Entry<'_>> {
        self.batch.entries_from(position)
    }

    /// Whether it removes this key of a unique index, and has not added it again.
    pub fn has_removed(&self, key: &[u8]) -> bool {
        self.removed.contains(key)
    }

    fn put(&mut self, key: &[u8], value: &[u8], fresh: bool) {
        if fresh { self.batch.put_new(key, value) } else { self.batch.put(key, value) }
    }

    /// A transaction's claim of a record it is about to write.
    pub fn claim(&mut self, at: &Snapshot, collection: &Collection, record: RecordId) -> Result<()> {
        match &mut self.gate {
            Gate::Claims(claims) => claims.record(at, collection, record),
            Gate::Open | Gate::Plain { .. } => Ok(()),
        }
    }

    /// A collection that this batch writes to has got another index.
    pub fn replace_collection(&mut self, collection: &Arc<Collection>) {
        if let Some(delta) = self.deltas.get_mut(&collection.id) {
            delta.collection = collection.clone();
        }
    }

    /// Stores something that belongs to the same commit and that nobody else writes.
    pub fn remember(&mut self, (key, value): &Record) {
        self.batch.put_new(key, value);
    }

    /// How this batch changes a collection's counts.
    pub fn delta(&self, collection: u64) -> Counts {
        self.deltas.get(&collection).map_or_else(Counts::default, |delta| delta.counts)
    }

    /// Adds a new document. Its record id is given out by the commit, and until then counts within the batch; a
    /// transaction, which reads its own writes, needs it at once.
    pub fn insert(&mut self, at: &Snapshot, collection: &Arc<Collection>, doc: RawDoc<'_>) -> Result<()> {
        let is_late = !self.is_read;
        let record = if is_late {
            self.deltas.get(&collection.id).map_or(0, |delta| delta.fresh)
        } else {
            collection.live.take_record()
        };
        // All keys first: an error must leave the batch as it was.
        let mut entries = Vec::with_capacity(collection.indexes.len());
        let mut multikey = false;
        for index in &collection.indexes {
            if index.spec.is_id() {
                let entry = Entry::of_id(index.id, id_of(doc), index.spec.collator(), record);
                self.check_free(at, collection, index, &entry, None)?;
                entries.push((index, entry));
                continue;
            }
            let keys = index_keys(index, doc)?;
            check_keys(index, &keys, self.key_bytes_max)?;
            for (encoded, types) in &keys.entries {
                let entry = Entry::new(index.id, &index.spec, encoded, types, record);
                self.check_free(at, collection, index, &entry, None)?;
                entries.push((index, entry));
            }
            multikey |= index.note_multikey(keys.multikey);
        }
        self.touch(collection, Counts { documents: 1, bytes: doc.as_bytes().len() as i64 }, multikey);
        self.put(&collection.record_key(record), doc.as_bytes(), true);
        if is_late {
            debug_assert_eq!(self.deltas.len(), 1, "record ids of two collections in one batch");
            self.deltas.entry(collection.id).and_modify(|delta| delta.fresh += 1);
            self.batch.relative(Relative::KeyEnd);
        }
        for (index, entry) in entries {
            let place = if index.spec.unique { Relative::ValueStart } else { Relative::KeyEnd };
            self.add_entry(index, entry);
            if is_late {
                self.batch.relative(place);
            }
        }
        self.notes.inserted(&mut self.batch, collection);
        self.change(collection, None, Some(doc));
        Ok(())
    }

    /// Replaces a document. Indexes that are `untouched` have the same entries for both.
    #[allow(clippy::too_many_arguments)]
    pub fn update(
        &mut self,
        at: &Snapshot,
        collection: &Arc<Collection>,
        record: RecordId,
        before: RawDoc<'_>,
        after: RawDoc<'_>,
        what: &Description,
        untouched: Untouched,
    ) -> Result<()> {
        let mut changed = Vec::new();
        let mut multikey = false;
        for (number, index) in collection.indexes.iter().enumerate() {
            if index.spec.is_id() || untouched.has(number) {
                continue;
            }
            let (old, new) = (index_keys(index, before)?, index_keys(index, after)?);
            check_keys(index, &new, self.key_bytes_max)?;
            // An array of one value has the entry of the value alone, but the index must know that it is there.
            if old.entries == new.entries && old.multikey == new.multikey {
                continue;
            }
            // What stays is this document's already, also if this transaction has made it so.
            let mut entries = Vec::new();
            for (encoded, types) in &new.entries {
                let there = old.get(encoded);
                if there == Some(types) {
                    continue;
                }
                let entry = Entry::new(index.id, &index.spec, encoded, types, record);
                if there.is_none() {
                    self.check_free(at, collection, index, &entry, Some(record))?;
                }
                entries.push(entry);
            }
            multikey |= index.note_multikey(new.multikey);
            changed.push((index, old, new, entries));
        }
        let grown = after.as_bytes().len() as i64 - before.as_bytes().len() as i64;
        self.touch(collection, Counts { documents: 0, bytes: grown }, multikey);
        self.put(&collection.record_key(record), after.as_bytes(), false);
        for (index, old, new, entries) in changed {
            self.remove_entries(at, index, &old, record, Some(&new))?;
            entries.into_iter().for_each(|entry| self.add_entry(index, entry));
        }
        self.notes.updated(&mut self.batch, collection, what, before);
        self.change(collection, Some(before), Some(after));
        Ok(())
    }

    pub fn delete(
        &mut self,
        at: &Snapshot,
        collection: &Arc<Collection>,
        record: RecordId,
        doc: RawDoc<'_>,
    ) -> Result<()> {
        self.touch(collection, Counts { documents: -1, bytes: -(doc.as_bytes().len() as i64) }, false);
        self.batch.delete(&collection.record_key(record));
        for index in &collection.indexes {
            if index.spec.is_id() {
                let entry = Entry::of_id(index.id, id_of(doc), index.spec.collator(), record);
                self.remove_entry(at, index, entry)?;
                continue;
            }
            let old = index_keys(index, doc)?;
            self.remove_entries(at, index, &old, record, None)?;
        }
        self.notes.deleted(&mut self.batch, collection, doc);
        self.change(collection, Some(doc), None);
        Ok(())
    }

    fn touch(&mut self, collection: &Arc<Collection>, counts: Counts, multikey: bool) {
        let delta = self.deltas.entry(collection.id).or_insert_with(|| {
            // An index or option that appears meanwhile is a conflict.
            self.batch.guard(&collection.guard_key());
            Delta::of(collection.clone())
        });
        delta.counts = delta.counts.plus(counts);
        delta.multikey |= multikey;
    }

    fn change(&mut self, collection: &Arc<Collection>, before: Option<RawDoc<'_>>, after: Option<RawDoc<'_>>) {
        if self.want_changes {
            self.changes.push(Change {
                collection: collection.ns.clone(),
                before: before.map(DocBuf::from_raw),
                after: after.map(DocBuf::from_raw),
            });
        }
    }

    /// Refuses an entry of a unique index whose key another document has: any but `own`.
    fn check_free(
        &mut self,
        at: &Snapshot,
        collection: &Collection,
        index: &Index,
        entry: &Entry,
        own: Option<RecordId>,
    ) -> Result<()> {
        if !index.spec.unique {
            return Ok(());
        }
        self.gate.wait(index.id, &entry.key)?;
        let taken = if self.added.contains(&entry.key) {
            true
        } else if self.removed.contains(&entry.key) {
            false
        } else {
            at.get(&entry.key).map_err(kv)?.is_some_and(|value| Some(record_at_start(&value)) != own)
        };
        if taken {
            let (encoded, _, types) = split(true, &entry.key, &entry.value);
            return Err(duplicate_key(collection, index, encoded, types));
        }
        self.gate.claim(at, index.id, &entry.key)
    }

    fn add_entry(&mut self, index: &Index, entry: Entry) {
        if index.spec.unique {
            self.put(&entry.key, &entry.value, false);
            self.removed.remove(&entry.key);
            self.added.insert(entry.key);
        } else {
            // The record id is part of the key, and the record itself is checked for conflicts.
            self.put(&entry.key, &entry.value, true);
        }
    }

    fn remove_entries(
        &mut self,
        at: &Snapshot,
        index: &Index,
        keys: &Keys,
        record: RecordId,
        kept: Option<&Keys>,
    ) -> Result<()> {
        for (encoded, types) in &keys.entries {
            if kept.is_some_and(|kept| kept.get(encoded).is_some()) {
                continue;
            }
            self.remove_entry(at, index, Entry::new(index.id, &index.spec, encoded, types, record))?;
        }
        Ok(())
    }

    fn remove_entry(&mut self, at: &Snapshot, index: &Index, entry: Entry) -> Result<()> {
        if index.spec.unique {
            self.gate.wait(index.id, &entry.key)?;
            self.gate.claim(at, index.id, &entry.key)?;
        }
        self.batch.delete(&entry.key);
        if index.spec.unique {
            self.added.remove(&entry.key);
            self.removed.insert(entry.key);
        }
        Ok(())
    }
}
