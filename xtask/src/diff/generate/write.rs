//! `update` commands, each on the documents as they were, with what is stored afterwards.

use bson::doc;

use super::document::documents;
use super::sort::key;
use super::update::update;
use super::{Kind, Scenario};
use crate::random::Random;

pub const UPDATE: Kind = Kind { name: "update", generate };

const COMMANDS: usize = 5;

fn generate(random: &mut Random) -> Scenario {
    let documents = documents(random);
    let index = random.chance(1, 3).then(|| key(random));
    let commands = (0..COMMANDS)
        .map(|_| {
            let mut update = update(random);
            if index.is_some() {
                // Which document an update takes first is the plan's choice; by `_id` there is none.
                update.insert("q", doc! { "_id": random.below(documents.len() as u64) as i32 });
            }
            doc! { "update": "c", "updates": [update] }
        })
        .collect();
    Scenario { documents, index, commands, writes: true, unordered: false }
}
