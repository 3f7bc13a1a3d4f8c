//! What is printed is read back as the same value, with the same types.
#![allow(clippy::unwrap_used)]

use bson::{Bson, doc};

use super::{parse, print, print_wrapped};

/// Texts that are already in canonical form.
const CANONICAL: &[&str] = &[
    "{}",
    "[]",
    "{a: 1, $b: \"x\", \"a.b\": true, \"\": null}",
    "[1, NumberLong(1), 1.0, NumberDecimal(\"1.50\"), -0.0, NaN, Infinity, -Infinity, 1e300, 1.5e-7]",
    "NumberLong(9223372036854775807)",
    "ObjectId(\"0123456789abcdef01234567\")",
    "ISODate(\"2026-04-15T10:00:00Z\")",
    "ISODate(\"1969-12-31T23:59:59.999Z\")",
    "Date(9223372036854775807)",
    "Date(-9223372036854775808)",
    "Timestamp(4294967295, 1)",
    "BinData(0, \"\")",
    "BinData(0, \"AQ==\")",
    "BinData(5, \"AQID\")",
    "BinData(2, \"AQIDBA==\")",
    "BinData(4, \"AQID\")",
    "UUID(\"3b241101-e2bb-4255-8caf-4136c566a962\")",
    "/^a\\.b$/i",
    "RegExp(\"a/b\")",
    "RegExp(\"[/]\", \"im\")",
    "RegExp(\"\")",
    "MinKey",
    "MaxKey",
    "undefined",
    "Code(\"function() {}\")",
    "Code(\"x\", {x: 1})",
    "Symbol(\"s\")",
    "DBPointer(\"test.c\", ObjectId(\"0123456789abcdef01234567\"))",
    "\"a\\\"b\\\\c\\n\\u0001ü😀'\"",
    "\"x\".repeat(1000)",
    "[<oid>, <cursor>, <now>, <uuid>, <ts>, <any>]",
];

#[test]
fn canonical_text_is_a_fixed_point() {
    for text in CANONICAL {
        assert_eq!(print(&parse(text).unwrap()), *text);
    }
}

#[test]
fn what_is_printed_is_what_goes_over_the_wire() {
    for text in CANONICAL {
        let value = parse(text).unwrap();
        let bytes = doc! { "v": value.clone() }.to_vec().unwrap();
        let read = bson::Document::from_reader(bytes.as_slice()).unwrap();
        assert_eq!(print(read.get("v").unwrap()), print(&value));
    }
}

#[test]
fn people_write_it_as_in_mongosh() {
    let cases = [
        ("{'a': 1, // one\n b: [1,2,],}", "{a: 1, b: [1, 2]}"),
        ("NumberLong(\"5\")", "NumberLong(5)"),
        ("3000000000", "NumberLong(3000000000)"),
        ("new Date(0)", "ISODate(\"1970-01-01T00:00:00Z\")"),
        ("ISODate('2026-04-15')", "ISODate(\"2026-04-15T00:00:00Z\")"),
        ("MinKey()", "MinKey"),
        ("/a\\/b/", "RegExp(\"a/b\")"),
        ("/[/]/", "RegExp(\"[/]\")"),
        ("DBRef('c', 1)", "{$ref: \"c\", $id: 1}"),
        ("Double(1)", "1.0"),
        ("NumberInt('7')", "7"),
        ("HexData(0, '01')", "BinData(0, \"AQ==\")"),
        ("Timestamp({t: 1, i: 2})", "Timestamp(1, 2)"),
        ("repeat(3, {_id: i, a: [i]})", "[{_id: 0, a: [0]}, {_id: 1, a: [1]}, {_id: 2, a: [2]}]"),
        ("repeat(0, i)", "[]"),
        ("'\\ud83d\\ude00'", "\"😀\""),
    ];
    for (written, canonical) in cases {
        assert_eq!(print(&parse(written).unwrap()), canonical, "{written}");
    }
}

#[test]
fn what_is_wrong_is_refused() {
    for text in [
        "",
        "{",
        "{a}",
        "[1 2]",
        "{a: 1, a: 2}",
        "Nonsense(1)",
        "\"abc",
        "1 2",
        "<what>",
        "i",
        "reply(1)",
        "99999999999999999999",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_long_value_is_wrapped_and_still_the_same() {
    let items: Vec<Bson> = (0..40).map(|n| doc! { "_id": n, "name": "n".repeat(n as usize) }.into()).collect();
    let value = Bson::Document(doc! { "cursor": { "firstBatch": items, "ns": "test.c" }, "ok": 1.0 });
    let text = print_wrapped(&value);
    assert!(text.lines().count() > 40);
    assert_eq!(parse(&text).unwrap(), value);
}
