//! Values of every type, from small sets so that they meet.

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Timestamp};

use super::document;
use crate::random::Random;

/// A value that may hold others.
pub fn value(random: &mut Random, depth: u32) -> Bson {
    if depth > 0 && random.chance(3, 10) {
        return match random.below(2) {
            0 => Bson::Array((0..random.below(4)).map(|_| value(random, depth - 1)).collect()),
            _ => Bson::Document(document::fields(random, depth - 1)),
        };
    }
    scalar(random)
}

/// A value that holds no others.
pub fn scalar(random: &mut Random) -> Bson {
    match random.below(20) {
        0..8 => number(random),
        8..11 => Bson::String(string(random)),
        11 => Bson::Boolean(random.chance(1, 2)),
        12 | 13 => Bson::Null,
        14 => Bson::DateTime(DateTime::from_millis(random.between(-2, 2) * 1000)),
        15 => Bson::ObjectId(ObjectId::from_bytes([random.below(3) as u8; 12])),
        16 => Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: vec![random.below(3) as u8; 2] }),
        17 => Bson::Timestamp(Timestamp { time: random.below(3) as u32, increment: 1 }),
        18 => Bson::MinKey,
        _ => Bson::MaxKey,
    }
}

/// A number of any type; equal values of different types on purpose.
pub fn number(random: &mut Random) -> Bson {
    let n = random.between(-2, 5);
    match random.below(12) {
        0..5 => Bson::Int32(n as i32),
        5 | 6 => Bson::Int64(n),
        7 | 8 => Bson::Double(n as f64),
        9 => Bson::Double(n as f64 + 0.5),
        10 => {
            let text =
                *random.pick(&["1", "1.0", "2.5", "-1", "NaN", "0", "-0", "0.1", "Infinity", "9007199254740993"]);
            text.parse().map_or(Bson::Null, Bson::Decimal128)
        }
        _ => match random.below(9) {
            0 => Bson::Double(f64::NAN),
            1 => Bson::Double(-0.0),
            2 => Bson::Double(f64::INFINITY),
            3 => Bson::Int32(i32::MAX),
            4 => Bson::Int64(i64::MAX),
            5 => Bson::Int64((1 << 53) + 1),
            6 => Bson::Double((1u64 << 53) as f64),
            7 => Bson::Double(0.1),
            _ => Bson::Int64(i64::MIN),
        },
    }
}

pub fn string(random: &mut Random) -> String {
    (*random.pick(&["", "a", "A", "b", "ab", "Ab", "abc", "B", "1", "10", "9", "ü", "U", "e", "é", "a.b", "a-b", "$a"]))
        .to_owned()
}
