//! `aggregate` on generated pipelines. The results are compared as a bag: `$group` has no order.

use bson::doc;

use super::collation::collate;
use super::document::documents;
use super::index::indexes;
use super::pipeline::pipeline;
use super::{Kind, Scenario};
use crate::random::Random;

pub const AGGREGATE: Kind = Kind { name: "aggregate", generate };

const COMMANDS: usize = 15;

fn generate(random: &mut Random) -> Scenario {
    let documents = documents(random);
    let indexes = if random.chance(1, 2) { indexes(random) } else { Vec::new() };
    let commands = (0..COMMANDS)
        .map(|_| {
            let mut command = doc! { "aggregate": "c", "pipeline": pipeline(random), "cursor": { "batchSize": 1000 } };
            collate(random, &mut command);
            command
        })
        .collect();
    Scenario { documents, indexes, commands, writes: false, unordered: true }
}
