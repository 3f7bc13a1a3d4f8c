//! Projections: inclusion, exclusion, operators, and mixtures that are errors.

use bson::{Bson, Document, doc};

use super::filter::filter;
use super::path::path;
use crate::random::Random;

pub fn projection(random: &mut Random) -> Document {
    let mut projection = Document::new();
    let include = random.chance(1, 2);
    for _ in 0..random.between(1, 3) {
        let value: Bson = match random.below(12) {
            0 => doc! { "$slice": random.between(-2, 3) as i32 }.into(),
            1 => doc! { "$slice": [random.between(-3, 3) as i32, random.between(1, 3) as i32] }.into(),
            2 => doc! { "$elemMatch": filter(random, 0) }.into(),
            3 if include => Bson::String(format!("${}", path(random))),
            4 if include => doc! { "$literal": 1 }.into(),
            // A mixture of both is an error unless the field is _id, and must be the same error.
            5 => Bson::Int32(i32::from(!include)),
            _ => Bson::Int32(i32::from(include)),
        };
        projection.insert(path(random), value);
    }
    if random.chance(1, 4) {
        projection.insert("_id", random.chance(1, 2));
    }
    projection
}
