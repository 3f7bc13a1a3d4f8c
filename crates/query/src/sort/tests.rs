//! Sort keys as MongoDB 6.0.5 makes them (read back with `{$meta: "sortKey"}`).

#![allow(clippy::unwrap_used)]

use espalier_value::{ValueRef, key};

use super::{Order, Sort};
use crate::expression::Scope;
use crate::testing::{array, doc, docs};

/// The key written out value by value; `undefined` stands for an empty array.
fn key_of(input: &str, spec: &str) -> Result<Vec<u8>, i32> {
    let sort = Sort::parse(doc(spec).as_raw(), &Scope::default()).unwrap().unwrap();
    let mut out = Vec::new();
    sort.key(doc(input).as_raw(), &mut out).map_err(|e| e.code().0)?;
    Ok(out)
}

fn check(input: &str, spec: &str, expected: &str) {
    let sort = Sort::parse(doc(spec).as_raw(), &Scope::default()).unwrap().unwrap();
    let mut key = Vec::new();
    for (value, field) in array(expected).as_raw().iter().zip(sort.fields()) {
        let value = if matches!(value, ValueRef::String("undefined")) { ValueRef::Undefined } else { value };
        key::encode_directed(&mut key, value, field.descending);
    }
    assert_eq!(key_of(input, spec), Ok(key), "{input} by {spec}");
}

#[test]
fn keys_through_arrays() {
    check("{a: [3, 1, 2]}", "{a: 1}", "[1]");
    check("{a: [3, 1, 2]}", "{a: -1}", "[3]");
    check("{a: []}", "{a: 1}", "['undefined']");
    check("{b: 1}", "{a: 1}", "[null]");
    check("{a: [{b: 1}, 5]}", "{a.b: 1}", "[null]");
    check("{a: [{b: 1}, 5]}", "{a.b: -1}", "[1]");
    check("{a: []}", "{a.b: 1}", "[null]");
    check("{a: [[{b: 1}]]}", "{a.b: 1}", "[null]");
    check("{a: [{b: [3, 4]}, {b: [1]}]}", "{a.b: 1}", "[1]");
    check("{a: [{b: [3, 4]}, {b: []}]}", "{a.b: 1}", "['undefined']");
    check("{a: [[1, 2], [0, 5]]}", "{a: 1}", "[[0, 5]]");
    check("{a: 'x', b: [1, 2]}", "{a: 1, b: 1}", "['x', 1]");
}

#[test]
fn fields_of_one_array_come_from_one_element() {
    check("{a: [{x: 1, y: 5}, {x: 2, y: 1}]}", "{a.x: 1, a.y: 1}", "[1, 5]");
    check("{a: [{x: 1, y: 5}, {x: 1, y: 1}]}", "{a.x: 1, a.y: -1}", "[1, 5]");
    check("{a: [{x: 1, y: 5}, {x: 2, y: 1}], c: 3}", "{a.x: 1, c: 1, a.y: 1}", "[1, 3, 5]");
    check("{a: [{x: 2, y: 1}, {x: 1}]}", "{a.x: 1, a.y: 1}", "[1, null]");
    check("{a: [{x: [1, 2], y: 4}, {x: 0, y: [3]}]}", "{a.x: 1, a.y: 1}", "[0, 3]");
    check("{a: [1, 2]}", "{a: 1, a.b: 1}", "[1, null]");
    check("{a: [{b: [1, 2]}]}", "{a: 1, a.b: 1}", "[{b: [1, 2]}, 1]");
    check(
        "{a: [{b: [{c: 1, e: 2}, {c: 2, e: 0}], d: 1}, {b: [{c: 0, e: 9}], d: 7}]}",
        "{a.b.c: 1, a.d: 1, a.b.e: -1}",
        "[0, 7, 9]",
    );
}

#[test]
fn numbers_in_paths_are_indexes() {
    check("{a: [5, 6, 7]}", "{a.1: 1}", "[6]");
    check("{a: [5, 6, 7]}", "{a.5: 1}", "[null]");
    check("{a: [{b: 2}, {b: 3}]}", "{a.1.b: 1}", "[3]");
    check("{a: [[1, 2], [3, 4]]}", "{a.1: 1}", "[[3, 4]]");
    check("{a: [[1, 2], [3, 4]]}", "{a.1.0: 1}", "[3]");
    check("{a: {1: 7}}", "{a.1: 1}", "[7]");
    check("{a: [5, 6, 7]}", "{a.0: 1, a.1: 1}", "[5, 6]");
    check("{a: [{b: 2}, {b: 3}]}", "{a.0.b: 1, a.b: 1}", "[2, 2]");
    assert_eq!(key_of("{a: [{1: 9}, 6]}", "{a.1: 1}"), Err(16746));
}

#[test]
fn parallel_arrays_are_refused() {
    assert_eq!(key_of("{a: [1], b: [2]}", "{a: 1, b: 1}"), Err(2));
    assert_eq!(key_of("{a: [], b: []}", "{a: 1, b: 1}"), Err(2));
    assert_eq!(key_of("{a: {x: [1], y: [2]}}", "{a.x: 1, a.y: 1}"), Err(2));
    assert_eq!(key_of("{a: [{x: [1, 2], y: [3]}]}", "{a.x: 1, a.y: 1}"), Err(2));
    assert_eq!(key_of("{a: [5, 6, 7], b: [1]}", "{a.0: 1, b: 1}"), Err(2));
}

#[test]
fn specifications() {
    let code = |spec: &str| Sort::parse(doc(spec).as_raw(), &Scope::default()).err().map(|e| e.code().0);
    assert_eq!(code("{x: 1.5}"), None);
    assert_eq!(code("{x: 0}"), Some(15975));
    assert_eq!(code("{x: true}"), Some(15974));
    assert_eq!(code("{x: {}}"), Some(17312));
    assert_eq!(code("{x: {$meta: 'foo'}}"), Some(31138));
    assert_eq!(code("{'': 1}"), Some(40352));
    assert_eq!(code("{a.: 1}"), Some(40353));
    assert_eq!(code("{a..b: 1}"), Some(15998));
    assert_eq!(code("{$x: 1}"), Some(16410));
    let natural = |spec: &str| match Sort::parse_order(doc(spec).as_raw(), &Scope::default()) {
        Ok(Some(Order::Natural { reverse })) => Ok(reverse),
        Ok(_) => Err(0),
        Err(e) => Err(e.code().0),
    };
    assert_eq!(natural("{$natural: 1}"), Ok(false));
    assert_eq!(natural("{$natural: -1.0}"), Ok(true));
    assert_eq!(natural("{x: 1, $natural: 1}"), Err(2));
    assert_eq!(natural("{x: 1}"), Err(0));
}

/// A bound only leaves out keys that are at or beyond it, and never an error.
#[test]
fn a_bound_leaves_out_what_is_beyond_it() {
    let sort = |spec: &str| Sort::parse(doc(spec).as_raw(), &Scope::default()).unwrap().unwrap();
    let all = docs(
        "[{a: 1, b: 2}, {a: 1, b: 1}, {a: 2}, {a: 'x'}, {b: 1}, {a: [3, 0]}, {a: [], b: 4}, {a: {c: 1}}, {a: 1.5}]",
    );
    for spec in ["{a: 1, b: 1}", "{a: -1, b: 1}", "{b: -1, a: 1}", "{a: 1}", "{'a.c': -1}"] {
        let sort = sort(spec);
        for limit in &all {
            let mut bound = Vec::new();
            sort.key(limit.as_raw(), &mut bound).unwrap();
            for doc in &all {
                let (mut key, mut found) = (Vec::new(), Vec::new());
                sort.key(doc.as_raw(), &mut key).unwrap();
                if sort.key_below(doc.as_raw(), Some(&bound), &mut found).unwrap() {
                    assert_eq!(found, key);
                } else {
                    assert!(key >= bound, "{spec}");
                }
            }
        }
    }
    let parallel = doc("{a: 9, b: [1], c: [2]}");
    assert!(sort("{a: 1, b: 1, c: 1}").key_below(parallel.as_raw(), Some(&[0]), &mut Vec::new()).is_err());
}
