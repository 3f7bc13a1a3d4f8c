//! The groups by key. Keys are memcomparable encodings, so 1 and 1.0 are one group, which shows the one that came
//! first. The states of all groups lie in one array, group after group.

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef};

use super::hash::Seeded;
use super::places::Places;
use super::{Group, key_fields};
use crate::accumulator::{Accumulator, State};
use crate::context::Context;

/// What a group costs besides its key, its `_id` and its states.
const OVERHEAD_BYTES: usize = 64;

pub(super) struct Table {
    places: Places,
    ids: Vec<Value<'static>>,
    states: Vec<State>,
    /// For each accumulator whether it may hold more with every value, so that it must be asked.
    grows: Vec<bool>,
    pub memory_bytes: usize,
}

impl Table {
    pub fn new(group: &Group) -> Table {
        let fixed = |name| matches!(name, "$sum" | "$avg" | "$count" | "$stdDevPop" | "$stdDevSamp");
        Table {
            places: Places::new(),
            ids: Vec::new(),
            states: Vec::new(),
            grows: group.accumulators.iter().map(|spec| !fixed(spec.name())).collect(),
            memory_bytes: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// What makes the hashes of keys.
    pub fn seed(&self) -> Seeded {
        self.places.seed()
    }

    /// The place of a group, made if it is new.
    #[inline]
    pub fn place(
        &mut self,
        key: &[u8],
        hash: u64,
        id: ValueRef<'_>,
        group: &Group,
        context: &Context,
    ) -> Result<usize> {
        match self.places.find(key, hash) {
            Some(place) => Ok(place),
            None => self.insert(key, hash, id, group, context),
        }
    }

    fn insert(&mut self, key: &[u8], hash: u64, id: ValueRef<'_>, group: &Group, context: &Context) -> Result<usize> {
        let place = self.ids.len();
        let states: Vec<State> =
            group.accumulators.iter().map(|spec| spec.make(key_fields(id), context)).collect::<Result<_>>()?;
        if !self.places.insert(key, hash) {
            let message = "$group has more groups than it can hold in memory";
            return Err(Error::new(Code::ExceededMemoryLimit, message));
        }
        for state in states {
            self.memory_bytes += state.memory();
            self.states.push(state);
        }
        let id = Value::own(id);
        self.memory_bytes += OVERHEAD_BYTES + key.len() + id.heap_bytes();
        self.ids.push(id);
        Ok(place)
    }

    /// Whether an accumulator of a group has all it needs.
    pub fn is_full(&self, place: usize, accumulator: usize) -> bool {
        self.states[place * self.grows.len() + accumulator].is_full()
    }

    /// Gives a value to an accumulator of a group.
    #[inline]
    pub fn push(&mut self, place: usize, accumulator: usize, value: Option<ValueRef<'_>>) -> Result<()> {
        let state = &mut self.states[place * self.grows.len() + accumulator];
        if !self.grows[accumulator] {
            return state.push(value);
        }
        let before = state.memory();
        state.push(value)?;
        self.memory_bytes = (self.memory_bytes + state.memory()).saturating_sub(before);
        Ok(())
    }

    /// Gives an accumulator of a group what another state of its kind has gathered.
    pub fn merge(&mut self, place: usize, accumulator: usize, partial: ValueRef<'_>) -> Result<()> {
        let state = &mut self.states[place * self.grows.len() + accumulator];
        let before = state.memory();
        state.merge(partial)?;
        self.memory_bytes = (self.memory_bytes + state.memory()).saturating_sub(before);
        Ok(())
    }

    /// The result of a group; its states are used up.
    pub fn finish(&mut self, place: usize, group: &Group, out: &mut DocBuf) {
        let count = self.grows.len();
        finish(self.ids[place].or_null(), &mut self.states[place * count..(place + 1) * count], group, out);
    }

    /// Empties the table into `write`, in order of key: key, and `{_id, partial results}`.
    pub fn drain(&mut self, write: &mut dyn FnMut(&[u8], RawDoc<'_>) -> Result<()>) -> Result<()> {
        let mut record = DocBuf::new();
        for place in self.places.sorted() {
            record.clear();
            record.append("", self.ids[place].or_null());
            for state in &self.states[place * self.grows.len()..(place + 1) * self.grows.len()] {
                record.append("", state.partial().or_null());
            }
            write(self.places.key(place), record.as_raw())?;
        }
        self.places.clear();
        self.ids.clear();
        self.states.clear();
        self.memory_bytes = 0;
        Ok(())
    }
}

/// Writes a group's document.
pub(super) fn finish(id: ValueRef<'_>, states: &mut [State], group: &Group, out: &mut DocBuf) {
    out.clear();
    out.append("_id", id);
    for (name, state) in group.names.iter().zip(states) {
        let value = state.finish();
        out.append(name, value.or_null());
    }
}
