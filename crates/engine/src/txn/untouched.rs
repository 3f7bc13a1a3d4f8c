//! Which indexes an update leaves alone, told from its paths once for all the documents that it writes.

use espalier_query::update::Update;
use espalier_store::KeyPart;
use espalier_value::path::Part;

use crate::catalog::{Collection, Index};

/// A bit for each index of a collection whose entries an update cannot change.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Untouched(u64);

impl Untouched {
    pub fn of(collection: &Collection, update: &Update) -> Untouched {
        let Some(touched) = update.touched_paths() else { return Untouched::default() };
        let indexes = collection.indexes.iter().enumerate().take(u64::BITS as usize);
        let stays = |index: &Index| {
            // Which documents a partial index leaves out may depend on any field.
            let anywhere = index.spec.is_wildcard() || index.spec.partial.is_some();
            let meets = |part: &KeyPart| touched.iter().any(|path| meet(path.parts(), part.path.parts()));
            !anywhere && !index.spec.parts.iter().any(meets)
        };
        Untouched(indexes.filter(|(_, index)| stays(index)).fold(0, |bits, (number, _)| bits | 1 << number))
    }

    pub fn has(self, number: usize) -> bool {
        number < u64::BITS as usize && self.0 >> number & 1 == 1
    }
}

/// Whether one path leads to, above or below what the other leads to, in some document.
fn meet(one: &[Part], other: &[Part]) -> bool {
    for (one, other) in one.iter().zip(other) {
        // A number may name an element of an array, which a path without it passes through as well.
        if one.index().is_some() || other.index().is_some() || one.name().is_empty() {
            return true;
        }
        if one.name() != other.name() {
            return false;
        }
    }
    true
}
