//! Pipelines: stages whose answer is one, whatever order the documents come in.

use bson::{Document, doc};

use super::accumulator::accumulator;
use super::expression::{expression, field};
use super::filter::filter;
use super::path::path;
use super::sort::sort;
use crate::random::Random;

/// Stages with one right answer: matches come first (MongoDB may move a later one before a stage that fails), nothing
/// sorts after `$unwind` (copies of a document tie), and nothing follows `$group` (whose results have no order).
pub fn pipeline(random: &mut Random) -> Vec<Document> {
    let mut stages = Vec::new();
    for _ in 0..random.below(2) {
        stages.push(doc! { "$match": filter(random, 1) });
    }
    stages.push(doc! { "$sort": if random.chance(1, 2) { sort(random) } else { doc! { "_id": 1 } } });
    for _ in 0..random.between(1, 3) {
        stages.push(stage(random));
    }
    if random.chance(1, 3) {
        stages.push(doc! { "$group": { "_id": field(random), "v": accumulator(random), "n": { "$sum": 1 } } });
    }
    stages
}

fn stage(random: &mut Random) -> Document {
    match random.below(8) {
        0 | 1 => doc! { "$unwind": { "path": field(random), "preserveNullAndEmptyArrays": random.chance(1, 2) } },
        2 | 3 => doc! { "$set": { path(random): expression(random, 2) } },
        4 | 5 => doc! { "$project": { path(random): 1, "e": expression(random, 2) } },
        6 => doc! { "$unset": path(random) },
        _ => doc! { "$limit": random.between(1, 10) },
    }
}
