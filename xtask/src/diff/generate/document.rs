//! Documents: a few fields, some missing, nested a little.

use bson::{Bson, Document};

use super::path::FIELDS;
use super::value::value;
use crate::random::Random;

/// Documents with the `_id`s 0, 1, 2, …
pub fn documents(random: &mut Random) -> Vec<Document> {
    let count = random.between(1, 20);
    (0..count)
        .map(|id| {
            let mut document = Document::new();
            document.insert("_id", Bson::Int32(id as i32));
            document.extend(fields(random, 2));
            document
        })
        .collect()
}

/// Some of the fields, in any order.
pub fn fields(random: &mut Random, depth: u32) -> Document {
    let mut document = Document::new();
    for _ in 0..random.below(5) {
        document.insert((*random.pick(&FIELDS)).to_owned(), value(random, depth));
    }
    document
}
