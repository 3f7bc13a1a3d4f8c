//! Filters: comparisons, arrays, logic, and now and then something invalid.

use bson::{Bson, Document, doc};

use super::path::path;
use super::value::{number, scalar, string, value};
use crate::random::Random;

pub fn filter(random: &mut Random, depth: u32) -> Document {
    let mut filter = Document::new();
    for _ in 0..random.between(if depth > 1 { 0 } else { 1 }, 2) {
        if depth > 0 && random.chance(1, 5) {
            let name = *random.pick(&["$and", "$or", "$nor"]);
            let branches: Vec<Bson> =
                (0..random.between(1, 3)).map(|_| self::filter(random, depth - 1).into()).collect();
            filter.insert(name, branches);
        } else {
            filter.insert(path(random), condition(random, depth));
        }
    }
    filter
}

fn condition(random: &mut Random, depth: u32) -> Bson {
    if random.chance(1, 4) {
        return value(random, 1);
    }
    let mut operators = operator(random, depth);
    if random.chance(1, 4) {
        operators.extend(operator(random, depth));
    }
    Bson::Document(operators)
}

fn operator(random: &mut Random, depth: u32) -> Document {
    match random.below(22) {
        0..8 => {
            let name = *random.pick(&["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]);
            doc! { name: value(random, 1) }
        }
        8 | 9 => doc! { *random.pick(&["$in", "$nin"]): values(random) },
        10 | 11 => doc! { "$exists": random.chance(1, 2) },
        12 => {
            let alias = *random
                .pick(&["double", "string", "object", "array", "null", "int", "long", "decimal", "number", "date"]);
            doc! { "$type": alias }
        }
        13 => doc! { "$size": random.between(0, 3) as i32 },
        14 => doc! { "$all": values(random) },
        15 | 16 if depth > 0 => match random.below(2) {
            0 => doc! { "$elemMatch": filter(random, depth - 1) },
            _ => doc! { "$elemMatch": operator(random, 0) },
        },
        17 | 18 if depth > 0 => doc! { "$not": operator(random, depth - 1) },
        19 => doc! { "$mod": [number(random), number(random)] },
        20 => doc! { "$regex": regular(random), "$options": *random.pick(&["", "i", "s"]) },
        21 => {
            let name = *random.pick(&["$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"]);
            doc! { name: random.between(0, 7) as i32 }
        }
        _ => doc! { "$eq": scalar(random) },
    }
}

fn values(random: &mut Random) -> Vec<Bson> {
    (0..random.below(4)).map(|_| value(random, 1)).collect()
}

fn regular(random: &mut Random) -> String {
    match random.below(4) {
        0 => format!("^{}", string(random).replace('$', "")),
        1 => "b$".to_owned(),
        2 => "a.?b".to_owned(),
        _ => ".".to_owned(),
    }
}
