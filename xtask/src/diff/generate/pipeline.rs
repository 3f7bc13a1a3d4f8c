//! Pipelines: stages whose answer is one, whatever order the documents come in.

use bson::{Bson, Document, doc};

use super::filter::filter;
use super::path::path;
use super::sort::sort;
use super::value::scalar;
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

fn accumulator(random: &mut Random) -> Document {
    let name = *random.pick(&["$sum", "$avg", "$min", "$max", "$first", "$last", "$push"]);
    doc! { name: field(random) }
}

fn expression(random: &mut Random, depth: u32) -> Bson {
    if depth == 0 || random.chance(1, 3) {
        return if random.chance(2, 3) { field(random) } else { doc! { "$literal": scalar(random) }.into() };
    }
    let mut inner = || expression(random, depth - 1);
    let (one, two, three) = (inner(), inner(), inner());
    match random.below(14) {
        0..4 => doc! { *random.pick(&["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp"]): [one, two] },
        4..6 => doc! { *random.pick(&["$add", "$subtract", "$multiply", "$divide", "$mod"]): [one, two] },
        6 => doc! { *random.pick(&["$and", "$or"]): [one, two, three] },
        7 => doc! { "$cond": [one, two, three] },
        8 => doc! { "$ifNull": [one, two, three] },
        9 => doc! { *random.pick(&["$type", "$size", "$isArray", "$toString", "$toInt", "$toDouble", "$abs", "$not", "$isNumber"]): [one] },
        10 => doc! { *random.pick(&["$concat", "$concatArrays", "$setUnion", "$mergeObjects"]): [one, two] },
        11 => doc! { *random.pick(&["$in", "$arrayElemAt"]): [one, two] },
        12 => doc! { *random.pick(&["$min", "$max", "$sum", "$avg"]): [one, two] },
        _ => doc! { "$map": { "input": one, "in": ["$$this", two] } },
    }
    .into()
}

fn field(random: &mut Random) -> Bson {
    Bson::String(format!("${}", path(random)))
}
