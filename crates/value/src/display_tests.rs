//! Documents as recorded from MongoDB, byte for byte.
#![allow(clippy::unwrap_used)]

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn documents_are_quoted_as_recorded() {
    let mut rows = 0;
    for line in include_str!("testdata/display.txt").lines().filter(|line| !line.starts_with('#')) {
        let [hex, request, computed] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not a row: {line}");
        };
        let document = bytes(hex);
        let document = crate::validate(&document).unwrap();
        assert_eq!(document.to_string(), request);
        assert_eq!(Computed(ValueRef::Document(document)).to_string(), computed);
        rows += 1;
    }
    assert!(rows > 80, "the table is short: {rows} rows");
}

#[test]
fn a_cut_never_splits_a_character() {
    let text = format!("a{}", "é".repeat(100));
    let shown = ValueRef::String(&text).to_string();
    assert_eq!(shown, format!("\"a{}...\"", "é".repeat(74)));
}

#[test]
fn bare_values_and_empty_ones() {
    assert_eq!(RawDoc::EMPTY.to_string(), "{}");
    assert_eq!(RawArray::EMPTY.to_string(), "[]");
    assert_eq!(ValueRef::Null.to_string(), "null");
    assert_eq!(Computed(ValueRef::Array(RawArray::EMPTY)).to_string(), "[]");
}
