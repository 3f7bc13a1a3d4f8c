//! Indexes on random fields, so that plans through them are compared with the reference's answers.
//!
//! No wildcard indexes: [`super::wildcard`] has those.

use bson::{Bson, Document, doc};

use super::collation::collate;
use super::path::path;
use super::sort::key;
use super::value::{number, scalar};
use crate::random::Random;

const INDEXES_MAX: i64 = 3;

/// Some indexes, named `i0`, `i1`, …
pub fn indexes(random: &mut Random) -> Vec<Document> {
    (0..random.between(0, INDEXES_MAX)).map(|number| index(random, number)).collect()
}

fn index(random: &mut Random, number: i64) -> Document {
    let mut fields = key(random);
    if random.chance(1, 3) {
        fields.extend(key(random));
    }
    let mut index = doc! { "key": fields, "name": name(number) };
    match random.below(10) {
        0 => {
            index.insert("sparse", true);
        }
        1 | 2 => {
            index.insert("partialFilterExpression", doc! { path(random): partial(random) });
        }
        // Most documents have a field twice; then neither server has the index.
        5 => {
            index.insert("unique", true);
        }
        _ => {}
    }
    collate(random, &mut index);
    index
}

/// One of the names that indexes have, whether or not there is one.
pub fn hint(random: &mut Random) -> String {
    name(random.between(0, INDEXES_MAX - 1))
}

fn name(number: i64) -> String {
    format!("i{number}")
}

fn partial(random: &mut Random) -> Bson {
    match random.below(4) {
        0 => doc! { "$exists": true }.into(),
        1 => doc! { *random.pick(&["$gt", "$gte", "$lt", "$lte"]): number(random) }.into(),
        2 => doc! { "$type": *random.pick(&["number", "string", "array", "object"]) }.into(),
        _ => scalar(random),
    }
}
