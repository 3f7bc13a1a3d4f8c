//! Accumulators for `$group`, `$bucket` and windows.

use bson::{Document, doc};

use super::expression::{expression, field};
use crate::random::Random;

const PLAIN: &[&str] = &["$sum", "$avg", "$first", "$last", "$push", "$stdDevPop", "$stdDevSamp", "$mergeObjects"];

/// One whose result depends on the documents and their order alone: `$addToSet` has no order, and which of several equal
/// values `$min` and `$max` give (1 or 1.0) depends on MongoDB's engine.
pub fn accumulator(random: &mut Random) -> Document {
    let n = random.between(1, 3) as i32;
    match random.below(12) {
        0 => doc! { "$count": {} },
        1 => doc! { *random.pick(&["$firstN", "$lastN", "$maxN", "$minN"]): { "input": field(random), "n": n } },
        2 => doc! { *random.pick(&["$top", "$bottom"]): { "output": field(random), "sortBy": { "_id": 1 } } },
        3 => doc! { *random.pick(&["$topN", "$bottomN"]):
        { "output": field(random), "sortBy": { "_id": -1 }, "n": n } },
        4 => doc! { *random.pick(PLAIN): expression(random, 2) },
        _ => doc! { *random.pick(PLAIN): field(random) },
    }
}
