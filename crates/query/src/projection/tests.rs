//! Projections as MongoDB 6.0.5 applies them; the conformance files hold many more.

#![allow(clippy::unwrap_used)]

use espalier_value::DocBuf;

use super::{Kind, Projection};
use crate::context::Context;
use crate::expression::Scope;
use crate::testing::doc;

fn apply(kind: Kind, spec: &str, input: &str, position: Option<usize>) -> Result<DocBuf, i32> {
    let projection = Projection::parse(doc(spec).as_raw(), &Scope::default(), kind).map_err(|e| e.code().0)?;
    let mut out = doc("{left: 'over'}");
    projection.apply(doc(input).as_raw(), position, &Context::default(), &mut out).map_err(|e| e.code().0)?;
    Ok(out)
}

const INPUT: &str = "{_id: 1, a: {b: 1, c: 2, d: [{x: 1, y: 2}, 3, [{x: 4}]]}, arr: [1, 2, 3, 4], s: 't'}";

#[test]
fn shapes() {
    let cases = [
        ("{s: 1}", "{_id: 1, s: 't'}"),
        ("{_id: 0, s: 1}", "{s: 't'}"),
        ("{a: 0, arr: 0}", "{_id: 1, s: 't'}"),
        ("{_id: 0, a: 0, arr: 0}", "{s: 't'}"),
        ("{'a.d.x': 1}", "{_id: 1, a: {d: [{x: 1}, [{x: 4}]]}}"),
        ("{'a.d.x': 0, arr: 0}", "{_id: 1, a: {b: 1, c: 2, d: [{y: 2}, 3, [{}]]}, s: 't'}"),
        ("{a: {b: 1}, 'a.c': 1}", "{_id: 1, a: {b: 1, c: 2}}"),
        ("{'arr.q': 1}", "{_id: 1, arr: []}"),
        ("{z: '$s', s: 1, q: {y: '$nope'}}", "{_id: 1, s: 't', z: 't', q: {}}"),
        ("{'a.d.q': '$s'}", "{_id: 1, a: {d: [{q: 't'}, {q: 't'}, [{q: 't'}]]}}"),
        ("{'s.q': '$s', arr: 1}", "{_id: 1, arr: [1, 2, 3, 4], s: {q: 't'}}"),
        ("{arr: {$slice: [-3, 2]}, a: 0}", "{_id: 1, arr: [2, 3], s: 't'}"),
        ("{arr: {$slice: -1}, _id: 1}", "{_id: 1, arr: [4]}"),
        ("{arr: {$elemMatch: {$gt: 2}}, s: 1}", "{_id: 1, s: 't', arr: [3]}"),
        ("{arr: {$elemMatch: {$gt: 9}}}", "{_id: 1}"),
        ("{'arr.$': 1}", "{_id: 1, arr: [2]}"),
    ];
    for (spec, expected) in cases {
        assert_eq!(apply(Kind::Find, spec, INPUT, Some(1)), Ok(doc(expected)), "{spec}");
    }
}

#[test]
fn errors() {
    let cases = [
        (Kind::Find, "{a: 1, s: 0}", 31254),
        (Kind::Find, "{a: 0, s: 1}", 31253),
        (Kind::Find, "{a: 1, 'a.b': 1}", 31249),
        (Kind::Find, "{'a.b': 1, a: 1}", 31250),
        (Kind::Find, "{a: {}}", 51270),
        (Kind::Find, "{a: 0, z: '$s'}", 31310),
        (Kind::Find, "{a: 0, z: {$add: [1]}}", 31252),
        (Kind::Find, "{z: {$foo: 1}}", 31325),
        (Kind::Find, "{'a.$.b': 1}", 31394),
        (Kind::Find, "{'a.d': {$elemMatch: {x: 1}}}", 31275),
        (Kind::Find, "{'arr.$': 1}", 51246),
        (Kind::Aggregate, "{'arr.$': 1}", 31324),
        (Kind::Aggregate, "{}", 51272),
        (Kind::Aggregate, "{arr: {$elemMatch: {$gt: 1}}}", 168),
    ];
    for (kind, spec, code) in cases {
        assert_eq!(apply(kind, spec, INPUT, None), Err(code), "{spec}");
    }
}

#[test]
fn fields_needed() {
    let needed = |spec: &str| {
        let projection = Projection::parse(doc(spec).as_raw(), &Scope::default(), Kind::Find).unwrap();
        projection.fields_needed().map(|paths| paths.iter().map(|p| p.to_string()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(needed("{a: 1, 'b.c': 1}").as_deref(), Some("_id a b.c"));
    assert_eq!(needed("{_id: 0, z: '$b.c', b: 1}").as_deref(), Some("b"));
    assert_eq!(needed("{a: 0}"), None);
    assert_eq!(needed("{z: '$$ROOT'}"), None);
}

#[test]
fn many_names_are_found() {
    let spec: String = (0..100).map(|i| format!("f{i}: 1, ")).collect();
    let input: String = (0..200).rev().step_by(2).map(|i| format!("f{i}: {i}, ")).collect();
    let expected: String = (0..100).rev().filter(|i| i % 2 == 1).map(|i| format!("f{i}: {i}, ")).collect();
    let (spec, input) = (format!("{{_id: 0, {spec}}}"), format!("{{{input}}}"));
    assert_eq!(apply(Kind::Find, &spec, &input, None), Ok(doc(&format!("{{{expected}}}"))));
}
