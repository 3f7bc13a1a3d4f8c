//! The interface: what callers of updates rely on beside the results that the conformance files record.

use espalier_value::{Code, DocBuf, Path, RawDoc, Result, ValueRef, doc};

use super::{Apply, Kind, Prepared, Update, prepare_insert};
use crate::context::Context;
use crate::expression::Scope;

fn parse(update: &DocBuf) -> Result<Update> {
    Update::parse(ValueRef::from(update), &[], &Scope::default())
}

fn set(name: &str, value: i32) -> DocBuf {
    let mut fields = DocBuf::new();
    fields.append(name, value);
    doc! { "$set": &fields }
}

fn apply(update: &DocBuf, old: &DocBuf) -> Result<Option<DocBuf>> {
    parse(update)?.apply(old.as_raw(), &Apply::new(&Context::new(0, 1)))
}

fn text(doc: RawDoc<'_>) -> String {
    doc.to_string()
}

#[test]
fn kinds_are_told_by_the_first_field() {
    assert_eq!(parse(&set("a", 1)).unwrap().kind(), Kind::Operators);
    assert_eq!(parse(&doc! { "a": 1 }).unwrap().kind(), Kind::Replacement);
    assert_eq!(parse(&DocBuf::new()).unwrap().kind(), Kind::Replacement);
    let stages = espalier_value::ArrayBuf::from_iter([ValueRef::from(&set("a", 1))]);
    let pipeline = Update::parse(ValueRef::from(&stages), &[], &Scope::default()).unwrap();
    assert_eq!(pipeline.kind(), Kind::Pipeline);
    let neither = Update::parse(ValueRef::Int32(1), &[], &Scope::default()).unwrap_err();
    assert_eq!(neither.code(), Code::FailedToParse);
}

#[test]
fn touched_paths_end_before_what_depends_on_the_document() {
    let touched = |name: &str| {
        let update = parse(&set(name, 1)).unwrap();
        update.touched_paths().unwrap().iter().map(Path::to_string).collect::<Vec<_>>()
    };
    assert_eq!(touched("a.b"), ["a.b"]);
    assert_eq!(touched("a.$.b"), ["a"]);
    assert_eq!(touched("a.$[].b"), ["a"]);
    let rename = parse(&doc! { "$rename": &doc! { "a": "b.c" } }).unwrap();
    assert_eq!(rename.touched_paths().unwrap().iter().map(Path::as_str).collect::<Vec<_>>(), ["a", "b.c"]);
    assert!(parse(&doc! { "a": 1 }).unwrap().touched_paths().is_none());
}

#[test]
fn the_positional_part_needs_a_position() {
    let update = parse(&set("a.$", 9)).unwrap();
    assert!(update.needs_position());
    assert!(!parse(&set("a", 9)).unwrap().needs_position());
    let mut items = espalier_value::ArrayBuf::new();
    items.push(1).push(2);
    let old = doc! { "_id": 1, "a": &items };
    let context = Context::new(0, 1);
    let at = |position| update.apply(old.as_raw(), &Apply { position, ..Apply::new(&context) });
    assert_eq!(at(None).unwrap_err().code(), Code::BadValue);
    assert_eq!(text(at(Some(1)).unwrap().unwrap().as_raw()), "{ _id: 1, a: [ 1, 9 ] }");
}

#[test]
fn many_fields_are_found_however_many_there_are() {
    let (mut old, mut fields) = (doc! { "_id": 1 }, DocBuf::new());
    for i in 0..300 {
        old.append(&format!("f{i}"), i);
        fields.append(&format!("f{}", 299 - i), -1);
    }
    fields.append("new", -1);
    let new = apply(&doc! { "$set": &fields }, &old).unwrap().unwrap();
    assert_eq!(new.as_raw().count(), 302);
    assert!(new.as_raw().iter().skip(1).all(|e| matches!(e.value(), ValueRef::Int32(-1))));
    assert_eq!(new.as_raw().iter().last().map(|e| e.name()), Some("new"));
}

#[test]
fn two_spellings_of_one_element_conflict() {
    let mut items = espalier_value::ArrayBuf::new();
    items.push(1).push(2);
    let old = doc! { "_id": 1, "a": &items };
    for (one, other) in [("a.1", "a.01"), ("a.7", "a.07")] {
        let mut fields = DocBuf::new();
        fields.append(one, 1).append(other, 2);
        let refused = apply(&doc! { "$set": &fields }, &old).unwrap_err();
        assert_eq!(refused.code(), Code::ConflictingUpdateOperators, "{one} {other}");
    }
}

#[test]
fn a_second_field_of_the_same_name_is_left_alone() {
    let mut old = doc! { "_id": 1 };
    old.append("a", 1).append("a", 2);
    let new = apply(&set("a", 9), &old).unwrap().unwrap();
    assert_eq!(text(new.as_raw()), "{ _id: 1, a: 9, a: 2 }");
}

#[test]
fn a_deep_blocked_path_is_refused_in_good_time() {
    // One error repeats the walk once, not once for every level.
    let path = vec!["a"; 150].join(".");
    let mut old = doc! { "a": 1 };
    for _ in 0..148 {
        old = doc! { "a": &old };
    }
    let refused = apply(&set(&format!("{path}.b"), 1), &old).unwrap_err();
    assert_eq!(refused.code(), Code::PathNotViable);
}

#[test]
fn a_result_that_explodes_is_refused_on_the_way() {
    let items: espalier_value::ArrayBuf = (0..1000).map(ValueRef::Int32).collect();
    let old = doc! { "_id": 1, "a": &items };
    let long = "x".repeat(1 << 20);
    let refused = apply(&doc! { "$set": &doc! { "a.$[]": &long } }, &old).unwrap_err();
    assert_eq!(refused.code(), Code(17419));
}

fn prepare(doc: &DocBuf) -> Result<Prepared<'_>> {
    prepare_insert(doc.as_raw(), || [7; 12], 5 << 32)
}

#[test]
fn an_insert_with_its_id_first_is_not_copied() {
    let plain = doc! { "_id": 1, "a": 2 };
    assert!(matches!(prepare(&plain).unwrap(), Prepared::AsIs(_)));
    let moved = doc! { "a": 2, "_id": 1 };
    assert_eq!(text(prepare(&moved).unwrap().as_raw()), "{ _id: 1, a: 2 }");
    let added = doc! { "a": 2 };
    assert_eq!(text(prepare(&added).unwrap().as_raw()), "{ _id: ObjectId('070707070707070707070707'), a: 2 }");
}

#[test]
fn an_insert_gets_the_time_for_top_level_empty_timestamps() {
    let inner = doc! { "t": ValueRef::Timestamp(0) };
    let given = doc! { "_id": ValueRef::Timestamp(0), "t": ValueRef::Timestamp(0), "d": &inner };
    let stored = prepare(&given).unwrap();
    assert!(matches!(stored.as_raw().get("t"), Some(ValueRef::Timestamp(t)) if t == 5 << 32));
    assert!(matches!(stored.as_raw().get("_id"), Some(ValueRef::Timestamp(0))));
    assert_eq!(stored.as_raw().get_doc("d").unwrap(), inner.as_raw());
}

#[test]
fn an_insert_that_cannot_be_stored_is_refused() {
    let code = |doc: &DocBuf| prepare(doc).unwrap_err().code();
    let array = espalier_value::ArrayBuf::from_iter([ValueRef::Int32(1)]);
    assert_eq!(code(&doc! { "_id": &array }), Code::InvalidIdField);
    assert_eq!(code(&doc! { "_id": ValueRef::Regex("a", "") }), Code::InvalidIdField);
    assert_eq!(code(&doc! { "_id": ValueRef::Undefined }), Code::InvalidIdField);
    assert_eq!(code(&doc! { "_id": &doc! { "a": &doc! { "$b": 1 } } }), Code::DollarPrefixedFieldName);
    let mut twice = doc! { "_id": 1 };
    twice.append("_id", 2);
    assert_eq!(code(&twice), Code::BadValue);
    let nested = |levels: usize| (1..levels).fold(doc! { "a": 1 }, |inner, _| doc! { "a": &inner });
    assert_eq!(code(&nested(181)), Code::Overflow);
    assert!(prepare(&nested(180)).is_ok());
    assert!(prepare(&doc! { "_id": &doc! { "$ref": "c", "$id": 1 }, "$a": 1, "b.c": 1, "": 1 }).is_ok());
}

#[test]
fn an_upsert_takes_equalities_in_order_and_puts_the_id_first() {
    let (b, ax, ay) = (Path::new("b"), Path::new("a.x"), Path::new("a.y"));
    let equalities = [(&b, ValueRef::Int32(1)), (&ay, ValueRef::Int32(2)), (&ax, ValueRef::Int32(3))];
    let update = parse(&set("c", 4)).unwrap();
    let built = update.upsert(&equalities, [7; 12], &Context::new(0, 1)).unwrap();
    assert_eq!(text(built.as_raw()), "{ _id: ObjectId('070707070707070707070707'), a: { x: 3, y: 2 }, b: 1, c: 4 }");
    let replaced = parse(&doc! { "c": 4 }).unwrap().upsert(&equalities, [7; 12], &Context::new(0, 1)).unwrap();
    assert_eq!(text(replaced.as_raw()), "{ _id: ObjectId('070707070707070707070707'), c: 4 }");
}

/// What a change stream tells of an update; `None` for a replacement.
fn told(before: &str, update: &str, filters: &[&str]) -> Option<String> {
    let json = |text: &str| crate::testing::doc(text);
    let wrapped = json(&format!("{{u: {update}}}"));
    let filters: Vec<_> = filters.iter().map(|text| json(text)).collect();
    let filters: Vec<_> = filters.iter().map(|doc| doc.as_raw()).collect();
    let update = Update::parse(wrapped.as_raw().get("u").unwrap(), &filters, &Scope::default()).unwrap();
    let before = json(before);
    let context = Context::default();
    let (after, description) = update.apply_described(before.as_raw(), &Apply::new(&context)).unwrap().unwrap();
    let plain = update.apply(before.as_raw(), &Apply::new(&context)).unwrap().unwrap();
    assert_eq!(after.as_bytes(), plain.as_bytes());
    match description {
        super::Description::Updated(doc) => Some(doc.as_raw().to_string()),
        super::Description::Replaced => None,
    }
}

#[test]
fn updates_are_told_as_mongodb_tells_them() {
    let long = "x".repeat(60);
    let shown = |updated: &str, removed: &str, truncated: &str| {
        Some(format!("{{ updatedFields: {updated}, removedFields: {removed}, truncatedArrays: {truncated} }}"))
    };
    let operators = [
        (
            "{_id: 1, z: 1, m: 1, b: 1}",
            "{$set: {z: 2, q: 1, b: 2, a: 1}, $unset: {m: 1}}",
            &[][..],
            "{ b: 2, z: 2, a: 1, q: 1 }",
            "[ \"m\" ]",
        ),
        ("{_id: 1, a: 1}", "{$set: {'b.c.d': 2, 'b.x': 1, a: 5}}", &[], "{ a: 5, b: { c: { d: 2 }, x: 1 } }", "[]"),
        ("{_id: 1, arr: [1, 2]}", "{$push: {arr: {$each: [4, 5]}}}", &[], "{ arr.2: 4, arr.3: 5 }", "[]"),
        ("{_id: 1, arr: []}", "{$push: {arr: 4}}", &[], "{ arr: [ 4 ] }", "[]"),
        ("{_id: 1, arr: [1]}", "{$push: {arr: {$each: [4], $position: 1}}}", &[], "{ arr: [ 1, 4 ] }", "[]"),
        ("{_id: 1, arr: [1, 2]}", "{$pull: {arr: 2}}", &[], "{ arr: [ 1 ] }", "[]"),
        (
            "{_id: 1, arr: [1, 2, 3]}",
            "{$set: {'arr.5': 9}, $unset: {'arr.1': 1}}",
            &[],
            "{ arr.1: null, arr.5: 9 }",
            "[]",
        ),
        ("{_id: 1, arr: [1, 2, 3]}", "{$inc: {'arr.$[]': 1}}", &[], "{ arr: [ 2, 3, 4 ] }", "[]"),
        ("{_id: 1, arr: [1, 2, 3]}", "{$inc: {'arr.$[e]': 1}}", &["{e: 3}"][..], "{ arr.2: 4 }", "[]"),
        ("{_id: 1, a: 1, b: 2}", "{$rename: {a: 'c'}}", &[], "{ c: 1 }", "[ \"a\" ]"),
    ];
    for (before, update, filters, updated, removed) in operators {
        let filters: Vec<&str> = filters.to_vec();
        assert_eq!(told(before, update, &filters), shown(updated, removed, "[]"), "{update}");
    }
    let large = format!("{{_id: 1, a: 1, l: '{long}', arr: [1, 2, 3, 4, 5, 6, 7, 8, 9]}}");
    assert_eq!(told(&large, "[{$set: {a: 2}}]", &[]), shown("{ a: 2 }", "[]", "[]"));
    assert_eq!(told(&large, "[{$unset: ['a']}]", &[]), shown("{}", "[ \"a\" ]", "[]"));
    let cut = told(&large, "[{$set: {arr: {$slice: ['$arr', 7]}}}]", &[]);
    assert_eq!(cut, shown("{}", "[]", "[ { field: \"arr\", newSize: 7 } ]"));
    // Where telling takes more than the document, to the byte.
    assert_eq!(told("{_id: 1, a: 1, b: 'xxxxxx'}", "[{$set: {a: 2}}]", &[]), None);
    assert_eq!(told("{_id: 1, a: 1, b: 'xxxxxxx'}", "[{$set: {a: 2}}]", &[]), shown("{ a: 2 }", "[]", "[]"));
    assert_eq!(told("{_id: 1, a: 1}", "{b: 1}", &[]), None);
}
