//! Sorts: one or two fields, then `_id`, so that there is one right order.

use bson::{Bson, Document};

use super::path::path;
use crate::random::Random;

pub fn sort(random: &mut Random) -> Document {
    let mut sort = key(random);
    sort.insert("_id", direction(random));
    sort
}

/// The fields of an index or of a sort, without `_id`.
pub fn key(random: &mut Random) -> Document {
    let mut key = Document::new();
    for _ in 0..random.between(1, 2) {
        key.insert(path(random), direction(random));
    }
    key
}

fn direction(random: &mut Random) -> Bson {
    Bson::Int32(if random.chance(1, 2) { 1 } else { -1 })
}
