//! Field paths: few names, so that documents and commands meet.

use crate::random::Random;

pub const FIELDS: [&str; 4] = ["a", "b", "c", "d"];

/// A path into a document, most often a plain field.
pub fn path(random: &mut Random) -> String {
    let mut path = (*random.pick(&FIELDS)).to_owned();
    while random.chance(1, 4) {
        let next = match random.below(6) {
            0 => "0",
            1 => "1",
            _ => *random.pick(&FIELDS),
        };
        path.push('.');
        path.push_str(next);
    }
    path
}
