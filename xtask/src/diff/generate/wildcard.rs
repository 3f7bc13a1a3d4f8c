//! Finds through wildcard indexes.
//!
//! Conditions that a missing field meets too (`{a: {$gte: null}}`, `{a: {$lt: MaxKey}}`) are left out: through a wildcard
//! index MongoDB 6.0.5 does not find the documents that lack the field, and Espalier does.

use bson::{Bson, Document, doc};

use super::document::documents;
use super::index::hint;
use super::path::path;
use super::value::{number, string, value};
use super::{Kind, Scenario};
use crate::random::Random;

pub const WILDCARD: Kind = Kind { name: "wildcard", generate };

const COMMANDS: usize = 20;

fn generate(random: &mut Random) -> Scenario {
    let documents = documents(random);
    let key = if random.chance(2, 3) { "$**".to_owned() } else { format!("{}.$**", path(random)) };
    let mut index = doc! { "key": { key: 1 }, "name": "i0" };
    super::collation::collate(random, &mut index);
    let commands = (0..COMMANDS).map(|_| command(random)).collect();
    Scenario { documents, indexes: vec![index], commands, writes: false, unordered: true }
}

fn command(random: &mut Random) -> Document {
    let mut filter = doc! { path(random): condition(random) };
    match random.below(6) {
        0 => filter = doc! { "$or": [filter, { path(random): condition(random) }] },
        1 => filter = doc! { "$and": [filter, { path(random): condition(random) }] },
        _ => {}
    }
    let mut command = doc! { "find": "c", "filter": filter };
    if random.chance(1, 5) {
        command.insert("hint", hint(random));
    }
    super::collation::collate(random, &mut command);
    command
}

fn condition(random: &mut Random) -> Bson {
    match random.below(10) {
        0 => doc! { "$exists": true }.into(),
        1 => doc! { "$type": *random.pick(&["number", "string", "object", "array", "int"]) }.into(),
        2 => doc! { "$in": [number(random), string(random), Bson::Array(Vec::new())] }.into(),
        3 => doc! { "$in": [doc! {}, number(random)] }.into(),
        4 | 5 => doc! { *random.pick(&["$gt", "$gte", "$lt", "$lte"]): number(random) }.into(),
        6 => doc! { "$elemMatch": { "$gte": number(random) } }.into(),
        7 => doc! { "$eq": value(random, 1) }.into(),
        8 => doc! { "$eq": *random.pick(&["a", "B", "b"]) }.into(),
        _ => number(random),
    }
}
