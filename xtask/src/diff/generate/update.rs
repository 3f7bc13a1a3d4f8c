//! Updates: operators, replacements and pipelines.

use bson::{Bson, Document, doc};

use super::document::fields;
use super::filter::filter;
use super::path::path;
use super::value::{number, value};
use crate::random::Random;

/// An element of `updates`, with its filter and options.
pub fn update(random: &mut Random) -> Document {
    let mut update = doc! { "q": filter(random, 1) };
    match random.below(10) {
        0 => update.insert("u", fields(random, 2)),
        1 => update.insert("u", pipeline(random)),
        _ => {
            let multi = random.chance(1, 2);
            let with_identifier = random.chance(1, 8);
            update.insert("u", operators(random, with_identifier));
            if with_identifier {
                update.insert("arrayFilters", vec![Bson::from(doc! { "x": value(random, 0) })]);
            }
            multi.then(|| update.insert("multi", true)).flatten()
        }
    };
    // An upsert makes an `_id`; with one of its own the answers can be compared.
    if random.chance(1, 6) {
        update.insert("q", doc! { "_id": random.between(0, 40) as i32 });
        update.remove("multi");
        update.insert("upsert", true);
    }
    update
}

fn operators(random: &mut Random, with_identifier: bool) -> Document {
    let mut update = Document::new();
    for _ in 0..random.between(1, 2) {
        let path = match (with_identifier, random.below(10)) {
            (true, _) => format!("{}.$[x]", path(random)),
            (false, 0) => format!("{}.$[]", path(random)),
            (false, 1) => format!("{}.$", path(random)),
            _ => path(random),
        };
        let (name, argument) = operator(random);
        update.insert(name, doc! { path: argument });
    }
    update
}

fn operator(random: &mut Random) -> (&'static str, Bson) {
    match random.below(24) {
        0..4 => ("$set", value(random, 2)),
        4 | 5 => ("$unset", Bson::String(String::new())),
        6..9 => ("$inc", number(random)),
        9 => ("$mul", number(random)),
        10 | 11 => ("$min", value(random, 1)),
        12 | 13 => ("$max", value(random, 1)),
        14 => ("$push", value(random, 1)),
        15 | 16 => ("$push", push(random).into()),
        17 => ("$addToSet", value(random, 1)),
        18 => ("$addToSet", doc! { "$each": values(random) }.into()),
        19 => ("$pop", Bson::Int32(if random.chance(1, 2) { 1 } else { -1 })),
        20 => ("$pull", pull(random)),
        21 => ("$pullAll", values(random).into()),
        22 => ("$rename", Bson::String(path(random))),
        _ => ("$bit", doc! { *random.pick(&["and", "or", "xor"]): random.between(0, 7) as i32 }.into()),
    }
}

fn push(random: &mut Random) -> Document {
    let mut push = doc! { "$each": values(random) };
    if random.chance(1, 2) {
        push.insert("$position", random.between(-2, 3) as i32);
    }
    if random.chance(1, 2) {
        push.insert("$slice", random.between(-3, 3) as i32);
    }
    if random.chance(1, 2) {
        push.insert("$sort", if random.chance(1, 2) { Bson::Int32(1) } else { doc! { path(random): -1 }.into() });
    }
    push
}

fn pull(random: &mut Random) -> Bson {
    match random.below(3) {
        0 => value(random, 1),
        1 => doc! { "$gt": value(random, 0) }.into(),
        _ => filter(random, 0).into(),
    }
}

fn values(random: &mut Random) -> Vec<Bson> {
    (0..random.below(4)).map(|_| value(random, 1)).collect()
}

fn pipeline(random: &mut Random) -> Vec<Bson> {
    let set = |random: &mut Random| doc! { "$set": { path(random): format!("${}", path(random)) } };
    match random.below(3) {
        0 => vec![set(random).into()],
        1 => vec![set(random).into(), doc! { "$unset": path(random) }.into()],
        _ => vec![doc! { "$replaceWith": { "_id": "$_id", "z": format!("${}", path(random)) } }.into()],
    }
}
