//! The lists of operators.

use super::FAMILIES;

#[test]
fn lists_are_sorted() {
    for family in FAMILIES {
        assert!(family.is_sorted_by(|a, b| a.name < b.name));
    }
}
