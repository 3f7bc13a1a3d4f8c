//! Against what a driver's own writer gives.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::raw::RawDoc;

#[test]
fn documents_are_written_as_a_driver_writes_them() {
    let mut rows = 0;
    for line in include_str!("../testdata/extjson.txt").lines().filter(|line| !line.starts_with('#')) {
        let [hex, canonical, relaxed] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not a row: {line}");
        };
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect();
        let document = ValueRef::Document(RawDoc::new(&bytes).unwrap());
        assert_eq!(Canonical(document).to_string(), canonical);
        assert_eq!(Relaxed(document).to_string(), relaxed);
        rows += 1;
    }
    assert!(rows > 40, "the table is short: {rows} rows");
}

#[test]
fn types_that_drivers_no_longer_write() {
    let id = [0x50; 12];
    let hex = "50".repeat(12);
    assert_eq!(Canonical(ValueRef::Undefined).to_string(), r#"{"$undefined":true}"#);
    assert_eq!(Canonical(ValueRef::Symbol("s")).to_string(), r#"{"$symbol":"s"}"#);
    assert_eq!(
        Canonical(ValueRef::DbPointer("a.b", id)).to_string(),
        format!(r#"{{"$dbPointer":{{"$ref":"a.b","$id":{{"$oid":"{hex}"}}}}}}"#)
    );
}

#[test]
fn relaxed_dates_keep_a_fraction_that_is_not_zero() {
    let relaxed = |ms| Relaxed(ValueRef::DateTime(ms)).to_string();
    assert_eq!(relaxed(1), r#"{"$date":"1970-01-01T00:00:00.001Z"}"#);
    assert_eq!(relaxed(120_000), r#"{"$date":"1970-01-01T00:02:00Z"}"#);
    assert_eq!(relaxed(253_402_300_800_000), r#"{"$date":{"$numberLong":"253402300800000"}}"#);
}
