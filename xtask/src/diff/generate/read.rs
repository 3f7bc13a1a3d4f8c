//! `count` and `distinct`.

use bson::doc;

use super::collation::collate;
use super::document::documents;
use super::filter::filter;
use super::index::{hint, indexes};
use super::path::path;
use super::{Kind, Scenario};
use crate::random::Random;

pub const COUNT: Kind = Kind { name: "count", generate: count };
pub const DISTINCT: Kind = Kind { name: "distinct", generate: distinct };

const COMMANDS: usize = 20;

fn count(random: &mut Random) -> Scenario {
    let (documents, indexes) = (documents(random), indexes(random));
    let commands = (0..COMMANDS)
        .map(|_| {
            let mut command = doc! { "count": "c", "query": filter(random, 2) };
            if random.chance(1, 4) {
                command.insert("hint", hint(random));
            }
            if random.chance(1, 4) {
                command.insert("skip", random.between(0, 5) as i32);
            }
            if random.chance(1, 4) {
                command.insert("limit", random.between(0, 5) as i32);
            }
            collate(random, &mut command);
            command
        })
        .collect();
    Scenario { documents, indexes, commands, writes: false, unordered: false }
}

/// Without indexes: of equal values of different types an index may show another first.
fn distinct(random: &mut Random) -> Scenario {
    let documents = documents(random);
    let commands = (0..COMMANDS)
        .map(|_| {
            let mut command = doc! { "distinct": "c", "key": path(random), "query": filter(random, 1) };
            collate(random, &mut command);
            command
        })
        .collect();
    Scenario { documents, indexes: Vec::new(), commands, writes: false, unordered: true }
}
