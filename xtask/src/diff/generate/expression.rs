//! Expressions of every family, with arguments that mostly fit and sometimes do not.

use bson::{Bson, doc};

use super::path::path;
use super::value::{number, scalar, string, value};
use crate::random::Random;

const UNARY: &[&str] = &[
    "$abs",
    "$ceil",
    "$floor",
    "$sqrt",
    "$exp",
    "$ln",
    "$log10",
    "$trunc",
    "$round",
    "$first",
    "$last",
    "$size",
    "$isArray",
    "$reverseArray",
    "$arrayToObject",
    "$objectToArray",
    "$allElementsTrue",
    "$anyElementTrue",
    "$toUpper",
    "$toLower",
    "$strLenBytes",
    "$strLenCP",
    "$type",
    "$isNumber",
    "$toBool",
    "$toDate",
    "$toDecimal",
    "$toDouble",
    "$toInt",
    "$toLong",
    "$toObjectId",
    "$toString",
    "$not",
    "$year",
    "$month",
    "$dayOfMonth",
    "$dayOfWeek",
    "$dayOfYear",
    "$hour",
    "$minute",
    "$second",
    "$millisecond",
    "$week",
    "$isoWeek",
    "$isoWeekYear",
    "$isoDayOfWeek",
    "$bsonSize",
    "$binarySize",
    "$tsSecond",
    "$tsIncrement",
    "$sum",
    "$avg",
    "$min",
    "$max",
    "$stdDevPop",
    "$mergeObjects",
    "$degreesToRadians",
    "$radiansToDegrees",
];

const BINARY: &[&str] = &[
    "$eq",
    "$ne",
    "$gt",
    "$gte",
    "$lt",
    "$lte",
    "$cmp",
    "$subtract",
    "$divide",
    "$mod",
    "$pow",
    "$log",
    "$round",
    "$trunc",
    "$arrayElemAt",
    "$in",
    "$setDifference",
    "$setIsSubset",
    "$split",
    "$strcasecmp",
    "$slice",
    "$range",
    "$indexOfArray",
    "$indexOfBytes",
    "$indexOfCP",
];

const MANY: &[&str] = &[
    "$add",
    "$multiply",
    "$concat",
    "$concatArrays",
    "$mergeObjects",
    "$setUnion",
    "$setIntersection",
    "$setEquals",
    "$and",
    "$or",
    "$ifNull",
    "$min",
    "$max",
    "$sum",
    "$avg",
    "$stdDevPop",
];

const UNITS: &[&str] = &["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "x"];
const TYPES: &[&str] = &["double", "string", "bool", "date", "int", "long", "decimal", "objectId", "object", "x"];

/// A path or a constant, or an operator on others.
pub fn expression(random: &mut Random, depth: u32) -> Bson {
    if depth == 0 || random.chance(1, 4) {
        return operand(random);
    }
    let mut inner = || expression(random, depth - 1);
    let (one, two, three) = (inner(), inner(), inner());
    match random.below(20) {
        0..5 => doc! { *random.pick(UNARY): if random.chance(1, 2) { Bson::Array(vec![one]) } else { one } }.into(),
        5..10 => doc! { *random.pick(BINARY): [one, two] }.into(),
        10..13 => doc! { *random.pick(MANY): [one, two, three] }.into(),
        13 => doc! { "$cond": [one, two, three] }.into(),
        14 => doc! { *random.pick(&["$slice", "$range", "$substrBytes", "$substrCP", "$indexOfCP", "$indexOfBytes"]):
        [one, two, three] }
        .into(),
        15 | 16 => array(random, one, two),
        17 => text(random, one, two),
        18 => date(random, one, two),
        _ => other(random, one, two, three),
    }
}

fn operand(random: &mut Random) -> Bson {
    match random.below(12) {
        0..7 => field(random),
        7 => number(random),
        8 => doc! { "$literal": string(random) }.into(),
        9 => doc! { "$literal": scalar(random) }.into(),
        10 => doc! { "$literal": value(random, 1) }.into(),
        _ => (*random.pick(&["$$ROOT", "$$REMOVE", "$_id"])).into(),
    }
}

pub fn field(random: &mut Random) -> Bson {
    Bson::String(format!("${}", path(random)))
}

fn array(random: &mut Random, one: Bson, two: Bson) -> Bson {
    let n = random.between(0, 3) as i32;
    match random.below(8) {
        0 => doc! { "$map": { "input": one, "in": ["$$this", two] } },
        1 => doc! { "$filter": { "input": one, "cond": { *random.pick(&["$gt", "$ne", "$lte"]): ["$$this", two] } } },
        2 => doc! { "$filter": { "input": one, "cond": two, "limit": n } },
        3 => doc! { "$reduce": { "input": one, "initialValue": two, "in": ["$$value", "$$this"] } },
        4 => doc! { "$zip": { "inputs": [one, two], "useLongestLength": random.chance(1, 2) } },
        5 => {
            let by = if random.chance(1, 2) { Bson::Int32(1) } else { doc! { path(random): -1 }.into() };
            doc! { "$sortArray": { "input": one, "sortBy": by } }
        }
        6 => doc! { *random.pick(&["$firstN", "$lastN", "$maxN", "$minN"]): { "n": n, "input": one } },
        _ => doc! { "$let": { "vars": { "x": one, "y": two }, "in": { "p": "$$x", "q": "$$y.a" } } },
    }
    .into()
}

fn text(random: &mut Random, one: Bson, two: Bson) -> Bson {
    match random.below(3) {
        0 => doc! { *random.pick(&["$trim", "$ltrim", "$rtrim"]): { "input": one, "chars": two } },
        1 => doc! { *random.pick(&["$replaceOne", "$replaceAll"]):
        { "input": one, "find": two, "replacement": string(random) } },
        _ => doc! { *random.pick(&["$regexMatch", "$regexFind", "$regexFindAll"]):
        { "input": one, "regex": *random.pick(&["a", "^a", "b$", "(a)(x)?", "."]), "options": *random.pick(&["", "i"]) } },
    }
    .into()
}

fn date(random: &mut Random, one: Bson, two: Bson) -> Bson {
    let unit = *random.pick(UNITS);
    match random.below(6) {
        0 => doc! { "$dateToString": { "date": one, "format": "%Y-%m-%dT%H:%M:%S.%L %j %u %V %G", "onNull": two } },
        1 => doc! { *random.pick(&["$dateAdd", "$dateSubtract"]): { "startDate": one, "unit": unit, "amount": two } },
        2 => doc! { "$dateDiff": { "startDate": one, "endDate": two, "unit": unit } },
        3 => doc! { "$dateTrunc": { "date": one, "unit": unit, "binSize": random.between(1, 3) } },
        4 => doc! { "$dateToParts": { "date": one, "iso8601": random.chance(1, 2) } },
        _ => doc! { "$dateFromParts": { "year": one, "month": two } },
    }
    .into()
}

fn other(random: &mut Random, one: Bson, two: Bson, three: Bson) -> Bson {
    match random.below(6) {
        0 => doc! { "$convert": { "input": one, "to": *random.pick(TYPES), "onNull": two } },
        1 => doc! { "$convert": { "input": one, "to": *random.pick(TYPES), "onError": two, "onNull": three } },
        2 => doc! { "$switch": { "branches": [{ "case": one, "then": two }], "default": three } },
        3 => doc! { "$getField": { "field": "a", "input": one } },
        4 => doc! { "$setField": { "field": "b", "input": one, "value": two } },
        _ => doc! { "p": one, "q": [two, three] },
    }
    .into()
}
