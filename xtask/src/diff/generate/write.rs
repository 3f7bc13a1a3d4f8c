//! `update`, `delete` and `findAndModify`, each on the documents as they were, with what is stored afterwards.

use bson::{Document, doc};

use super::collation::collate;
use super::document::documents;
use super::filter::filter;
use super::index::indexes;
use super::projection::projection;
use super::sort::sort;
use super::update::update;
use super::{Kind, Scenario};
use crate::random::Random;

pub const DELETE: Kind = Kind { name: "delete", generate: |random| scenario(random, delete) };
pub const FIND_AND_MODIFY: Kind = Kind { name: "findAndModify", generate: |random| scenario(random, find_and_modify) };
pub const UPDATE: Kind = Kind { name: "update", generate: |random| scenario(random, update_command) };

const COMMANDS: usize = 5;

fn scenario(random: &mut Random, command: fn(&mut Random, usize, bool) -> Document) -> Scenario {
    let documents = documents(random);
    let indexes = if random.chance(1, 3) { indexes(random) } else { Vec::new() };
    let commands = (0..COMMANDS).map(|_| command(random, documents.len(), !indexes.is_empty())).collect();
    Scenario { documents, indexes, commands, writes: true, unordered: false }
}

fn update_command(random: &mut Random, documents: usize, indexed: bool) -> Document {
    let mut update = update(random);
    if indexed {
        // Which document an update takes first is the plan's choice; by `_id` there is none.
        update.insert("q", doc! { "_id": random.below(documents as u64) as i32 });
    }
    collate(random, &mut update);
    doc! { "update": "c", "updates": [update] }
}

fn delete(random: &mut Random, documents: usize, indexed: bool) -> Document {
    let mut delete = match random.below(3) {
        0 => doc! { "q": { "_id": random.below(documents as u64) as i32 }, "limit": 1 },
        1 if !indexed => doc! { "q": filter(random, 2), "limit": 1 },
        _ => doc! { "q": filter(random, 2), "limit": 0 },
    };
    collate(random, &mut delete);
    doc! { "delete": "c", "deletes": [delete] }
}

/// The sort ends with `_id`, so that it picks one document whatever the plan.
fn find_and_modify(random: &mut Random, _: usize, _: bool) -> Document {
    let mut command = doc! { "findAndModify": "c", "query": filter(random, 1), "sort": sort(random) };
    if random.chance(1, 4) {
        command.insert("remove", true);
    } else {
        let mut update = update(random);
        if let Some(change) = update.remove("u") {
            command.insert("update", change);
        }
        if let Some(filters) = update.remove("arrayFilters") {
            command.insert("arrayFilters", filters);
        }
        if update.contains_key("upsert") {
            command.insert("query", doc! { "_id": random.between(0, 40) as i32 });
            command.insert("upsert", true);
        }
        if random.chance(1, 2) {
            command.insert("new", true);
        }
    }
    if random.chance(1, 3) {
        command.insert("fields", projection(random));
    }
    collate(random, &mut command);
    command
}
