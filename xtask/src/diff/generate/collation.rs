//! Collations that both servers' rules treat alike (docs/collation.md names where they differ).

use bson::{Document, doc};

use crate::random::Random;

/// Has a command, a write or an index compare strings by a collation, now and then.
pub fn collate(random: &mut Random, target: &mut Document) {
    if random.chance(1, 5) {
        target.insert("collation", collation(random));
    }
}

fn collation(random: &mut Random) -> Document {
    let locale = *random.pick(&["en", "de", "fr", "es", "sv", "pl", "en_US", "fr_CA"]);
    let mut collation = doc! { "locale": locale, "strength": random.between(1, 3) as i32 };
    match random.below(8) {
        0 => collation.insert("numericOrdering", true),
        1 => collation.insert("caseLevel", true),
        2 => collation.insert("alternate", "shifted"),
        3 => collation.insert("caseFirst", *random.pick(&["upper", "lower"])),
        4 => collation.insert("backwards", true),
        _ => None,
    };
    collation
}
