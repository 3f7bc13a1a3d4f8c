//! `find`, unsorted (the results are a bag) and sorted with skip and limit, with and without indexes and hints.

use bson::{Document, doc};

use super::collation::collate;
use super::document::documents;
use super::filter::filter;
use super::index::{hint, indexes};
use super::projection::projection;
use super::sort::sort;
use super::{Kind, Scenario};
use crate::random::Random;

pub const FIND: Kind = Kind { name: "find", generate: |random| scenario(random, false) };
pub const SORTED: Kind = Kind { name: "sorted", generate: |random| scenario(random, true) };

const COMMANDS: usize = 20;

fn scenario(random: &mut Random, sorted: bool) -> Scenario {
    let documents = documents(random);
    let indexes = indexes(random);
    let commands = (0..COMMANDS).map(|_| command(random, sorted)).collect();
    Scenario { documents, indexes, commands, writes: false, unordered: !sorted }
}

fn command(random: &mut Random, sorted: bool) -> Document {
    let mut command = doc! { "find": "c", "filter": filter(random, 2) };
    if random.chance(1, 3) {
        command.insert("projection", projection(random));
    }
    if random.chance(1, 6) {
        command.insert("hint", hint(random));
    }
    if sorted {
        command.insert("sort", sort(random));
        if random.chance(1, 3) {
            command.insert("skip", random.between(0, 5) as i32);
        }
        if random.chance(1, 2) {
            command.insert("limit", random.between(0, 5) as i32);
        }
    }
    collate(random, &mut command);
    command
}
