//! Longer pipelines with stages of every kind, on a collection without indexes.
//!
//! What is generated has one answer: a stage whose results have no order is followed by a `$sort`, and nothing that
//! depends on the order follows `$unwind`, whose documents tie.

use bson::{Bson, Document, doc};

use super::accumulator::accumulator;
use super::collation::collate;
use super::document::documents;
use super::expression::{expression, field};
use super::filter::filter;
use super::path::path;
use super::sort::sort;
use super::value::{scalar, value};
use super::{Kind, Scenario};
use crate::random::Random;

pub const PIPELINE: Kind = Kind { name: "pipeline", generate };

const COMMANDS: usize = 15;

fn generate(random: &mut Random) -> Scenario {
    let documents = documents(random);
    let commands = (0..COMMANDS)
        .map(|_| {
            let mut command =
                doc! { "aggregate": "c", "pipeline": pipeline(random, 2), "cursor": { "batchSize": 1000 } };
            collate(random, &mut command);
            command
        })
        .collect();
    Scenario { documents, indexes: Vec::new(), commands, writes: false, unordered: true }
}

/// What the documents are like at a point of the pipeline.
struct State {
    /// Each has another `_id`, so that it orders them.
    unique: bool,
    depth: u32,
}

fn pipeline(random: &mut Random, depth: u32) -> Vec<Document> {
    let mut stages = Vec::new();
    if random.chance(1, 3) {
        stages.push(doc! { "$match": filter(random, 1) });
    }
    stages.push(doc! { "$sort": if random.chance(1, 3) { sort(random) } else { doc! { "_id": 1 } } });
    let mut state = State { unique: true, depth };
    for _ in 0..random.between(1, 4) {
        stages.extend(stage(random, &mut state));
    }
    stages
}

fn stage(random: &mut Random, state: &mut State) -> Vec<Document> {
    match random.below(22) {
        0..3 => vec![doc! { "$set": { path(random): expression(random, 2) } }],
        3..5 => vec![doc! { "$project": { path(random): 1, "e": expression(random, 3) } }],
        5 => vec![doc! { "$unset": path(random) }],
        6 => {
            state.unique = false;
            let mut unwind = doc! { "path": field(random), "preserveNullAndEmptyArrays": random.chance(1, 2) };
            if random.chance(1, 3) {
                unwind.insert("includeArrayIndex", path(random));
            }
            vec![doc! { "$unwind": unwind }]
        }
        7..10 => {
            state.unique = true;
            let id = if random.chance(1, 3) { expression(random, 2) } else { field(random) };
            let group = doc! { "_id": id, "a": accumulator(random), "b": accumulator(random), "n": { "$sum": 1 } };
            vec![doc! { "$group": group }, doc! { "$sort": { "_id": 1 } }]
        }
        10 => vec![doc! { *random.pick(&["$limit", "$skip"]): random.between(1, 8) }],
        11 => {
            state.unique = false;
            vec![doc! { "$replaceRoot": { "newRoot": { "$mergeObjects": [{ "_id": "$_id" }, field(random)] } } }]
        }
        12 => vec![redact(random)],
        13 => {
            state.unique = true;
            let mut bounds: Vec<Bson> = (0..random.between(2, 4)).map(|at| Bson::Int32(at as i32 * 2 - 2)).collect();
            if random.chance(1, 4) {
                bounds.push("a".into());
            }
            let mut bucket =
                doc! { "groupBy": field(random), "boundaries": bounds, "output": { "a": accumulator(random) } };
            if random.chance(3, 4) {
                bucket.insert("default", value(random, 0));
            }
            vec![doc! { "$bucket": bucket }]
        }
        14 if state.unique => {
            state.unique = false;
            let auto = doc! { "groupBy": "$_id", "buckets": random.between(1, 4) as i32, "output": { "a": accumulator(random) } };
            vec![doc! { "$bucketAuto": auto }]
        }
        15 => {
            state.unique = true;
            vec![doc! { "$sortByCount": field(random) }, doc! { "$sort": { "_id": 1 } }]
        }
        16 | 17 if state.depth > 0 => vec![lookup(random, state.depth - 1)],
        18 if state.depth > 0 => {
            state.unique = false;
            vec![doc! { "$unionWith": { "coll": "c", "pipeline": pipeline(random, state.depth - 1) } }]
        }
        19 if state.depth > 0 => {
            state.unique = false;
            // Which of two branches fails first is not fixed.
            let safe = [doc! { "$limit": random.between(1, 5) }];
            vec![doc! { "$facet": { "a": pipeline(random, 0), "b": safe.to_vec() } }]
        }
        20 if state.unique => vec![window(random)],
        21 if state.depth > 0 => {
            vec![graph(random), doc! { "$set": { "g": { "$sortArray": { "input": "$g", "sortBy": { "_id": 1 } } } } }]
        }
        _ => vec![doc! { "$set": { path(random): field(random), "f": expression(random, 2) } }],
    }
}

fn redact(random: &mut Random) -> Document {
    let test = doc! { *random.pick(&["$eq", "$gt", "$ne"]): [field(random), scalar_or_field(random)] };
    let (yes, no) = (*random.pick(&["$$DESCEND", "$$KEEP"]), *random.pick(&["$$DESCEND", "$$PRUNE"]));
    doc! { "$redact": { "$cond": [test, yes, no] } }
}

fn scalar_or_field(random: &mut Random) -> Bson {
    if random.chance(1, 2) { field(random) } else { doc! { "$literal": scalar(random) }.into() }
}

/// Not over a field that is there: where it goes then depends on the engine.
fn lookup(random: &mut Random, depth: u32) -> Document {
    let mut lookup = doc! { "from": *random.pick(&["c", "c", "none"]), "as": *random.pick(&["l", "l.m"]) };
    let kind = random.below(4);
    if kind != 1 {
        lookup.insert("localField", path(random));
        lookup.insert("foreignField", path(random));
    }
    if kind > 0 {
        let variable = random.chance(1, 2);
        if variable {
            lookup.insert("let", doc! { "x": expression(random, 1) });
        }
        let mut stages = Vec::new();
        if variable {
            stages.push(doc! { "$match": { "$expr": { *random.pick(&["$eq", "$lt"]): [field(random), "$$x"] } } });
        }
        stages.extend(pipeline(random, depth));
        lookup.insert("pipeline", stages);
    }
    doc! { "$lookup": lookup }
}

fn graph(random: &mut Random) -> Document {
    let mut graph = doc! {
        "from": "c", "startWith": field(random), "connectFromField": path(random), "connectToField": path(random),
        "as": "g",
    };
    if random.chance(1, 2) {
        graph.insert("maxDepth", random.between(0, 2) as i32);
    }
    if random.chance(1, 2) {
        graph.insert("depthField", "depth");
    }
    if random.chance(1, 3) {
        graph.insert("restrictSearchWithMatch", filter(random, 0));
    }
    doc! { "$graphLookup": graph }
}

fn window(random: &mut Random) -> Document {
    let function = match random.below(8) {
        0 => doc! { *random.pick(&["$rank", "$denseRank", "$documentNumber"]): {} },
        1 => doc! { "$shift": { "output": field(random), "by": random.between(-2, 2) as i32, "default": "none" } },
        2 => doc! { *random.pick(&["$locf", "$linearFill"]): field(random) },
        3 => doc! { "$expMovingAvg": { "input": field(random), "N": random.between(1, 3) as i32 } },
        4 => doc! { *random.pick(&["$covariancePop", "$covarianceSamp"]): [field(random), field(random)] },
        _ => {
            let mut function = accumulator(random);
            let edge = |random: &mut Random, low: i64, high: i64, end: &str| match random.below(4) {
                0 => Bson::String(end.to_owned()),
                1 => Bson::String("current".to_owned()),
                _ => Bson::Int32(random.between(low, high) as i32),
            };
            if random.chance(2, 3) && !function.contains_key("$mergeObjects") {
                let (low, high) = (edge(random, -2, 0, "unbounded"), edge(random, 0, 2, "unbounded"));
                function.insert("window", doc! { "documents": [low, high] });
            }
            function
        }
    };
    let mut window = doc! { "sortBy": { "_id": 1 }, "output": { "w": function } };
    if random.chance(1, 3) {
        window.insert("partitionBy", field(random));
    }
    doc! { "$setWindowFields": window }
}
