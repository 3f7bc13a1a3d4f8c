//! What one writer knows: which of its documents exist and what they hold, as acknowledged by the server.

use std::collections::BTreeMap;

/// The state of a document: its counter, or that it does not exist.
pub type State = Option<i64>;

/// A writer's memory, which outlives the server.
#[derive(Debug)]
pub struct Ledger {
    pub writer: u64,
    /// Documents of the collection `main`, by the number in their `_id`.
    pub documents: BTreeMap<i64, i64>,
    /// Documents of the collection `unique`: `_id` to `key`.
    pub unique: BTreeMap<i64, i64>,
    /// What was sent and not yet answered: for each document the state it may also be in.
    pub in_flight: BTreeMap<i64, State>,
    /// The same for the collection `unique`; a key, or none.
    pub unique_in_flight: BTreeMap<i64, State>,
    /// Whether the index this writer toggles exists; `None` while unknown.
    pub index: Option<bool>,
    pub acknowledged: u64,
    pub next_id: i64,
}

impl Ledger {
    pub fn new(writer: u64) -> Ledger {
        Ledger {
            writer,
            documents: BTreeMap::new(),
            unique: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            unique_in_flight: BTreeMap::new(),
            index: Some(false),
            acknowledged: 0,
            next_id: (writer as i64 + 1) << 40,
        }
    }

    /// Whether a number in an `_id` is one of this writer's.
    pub fn owns(&self, id: i64) -> bool {
        id >> 40 == self.writer as i64 + 1
    }

    pub fn fresh_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// The index that this writer creates and drops.
    pub fn index_name(&self) -> String {
        format!("toggled{}_1", self.writer)
    }

    /// Everything in flight was acknowledged.
    pub fn acknowledge(&mut self) {
        for (id, state) in std::mem::take(&mut self.in_flight) {
            self.acknowledged += 1;
            put(&mut self.documents, id, state);
        }
        for (id, state) in std::mem::take(&mut self.unique_in_flight) {
            self.acknowledged += 1;
            put(&mut self.unique, id, state);
        }
    }

    /// The states a document of `main` may legally be in.
    pub fn allowed(&self, id: i64) -> (State, Option<State>) {
        (self.documents.get(&id).copied(), self.in_flight.get(&id).copied())
    }

    pub fn allowed_unique(&self, id: i64) -> (State, Option<State>) {
        (self.unique.get(&id).copied(), self.unique_in_flight.get(&id).copied())
    }

    /// After a restart: what is there is from now on what is known.
    pub fn settle(&mut self, documents: BTreeMap<i64, i64>, unique: BTreeMap<i64, i64>) {
        self.documents = documents;
        self.unique = unique;
        self.in_flight.clear();
        self.unique_in_flight.clear();
    }
}

fn put(map: &mut BTreeMap<i64, i64>, id: i64, state: State) {
    match state {
        Some(value) => map.insert(id, value),
        None => map.remove(&id),
    };
}
