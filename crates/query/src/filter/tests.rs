//! What the recorded conformance files cannot show: positions, upsert equalities, bounds as the planner sees them,
//! conditions on single values, and the words of validation errors. Expected results were taken from MongoDB 6.0.5.

#![allow(clippy::unwrap_used)]

use espalier_value::{Code, Collator, DocBuf, RawDoc, ValueRef, doc};

use super::{ArrayFilter, Bounds, Filter, ValuePredicate, bounds};
use crate::context::Context;
use crate::expression::Scope;

fn parse(filter: &DocBuf) -> Filter {
    Filter::parse(filter.as_raw(), &Scope::default()).unwrap()
}

fn position(filter: &DocBuf, doc: &DocBuf) -> Option<usize> {
    parse(filter).matches_at(doc.as_raw(), &Context::default()).unwrap().unwrap().position
}

fn array<'v, T: Into<ValueRef<'v>>>(values: impl IntoIterator<Item = T>) -> espalier_value::ArrayBuf {
    values.into_iter().map(Into::into).collect()
}

fn numbers() -> DocBuf {
    doc! { "a": &array([1, 2, 3]), "b": &array([4, 5, 6]) }
}

#[test]
fn the_position_is_that_of_the_last_array_condition_in_sorted_order() {
    let gt = doc! { "$gt": 1 };
    // Equalities are sorted by path, so b decides, however it is written.
    assert_eq!(position(&doc! { "a": 2, "b": 6 }, &numbers()), Some(2));
    assert_eq!(position(&doc! { "b": 6, "a": 2 }, &numbers()), Some(2));
    // $gt sorts after equality.
    assert_eq!(position(&doc! { "a": &gt, "b": 4 }, &numbers()), Some(1));
    assert_eq!(position(&doc! { "b": 4, "a": &gt }, &numbers()), Some(1));
}

#[test]
fn alternatives_and_negations_leave_no_position() {
    let (a, z, four) = (doc! { "a": 3 }, doc! { "z": 3 }, doc! { "a": 4 });
    let either = |list: &[&DocBuf]| doc! { "$or": &array(list.iter().copied()) };
    assert_eq!(position(&either(&[&a, &z]), &numbers()), None);
    // One alternative is none, and alternatives on one path are an $in.
    assert_eq!(position(&either(&[&a]), &numbers()), Some(2));
    assert_eq!(position(&either(&[&a, &four]), &numbers()), Some(2));
    assert_eq!(position(&doc! { "a": &doc! { "$ne": 9 } }, &numbers()), None);
    assert_eq!(position(&doc! { "a": &array([1, 2, 3]) }, &numbers()), None);
    assert_eq!(position(&doc! { "a.1": 2 }, &numbers()), None);
}

#[test]
fn the_outermost_array_gives_the_position() {
    let inner = [doc! { "b": &array([1, 2]) }, doc! { "b": &array([3, 4, 5]) }];
    let nested = doc! { "a": &array(&inner) };
    let has_five = doc! { "$elemMatch": &doc! { "$eq": 5 } };
    assert_eq!(position(&doc! { "a.b": 5 }, &nested), Some(1));
    assert_eq!(position(&doc! { "a.b": &has_five }, &nested), Some(1));
    assert_eq!(position(&doc! { "a": &doc! { "$elemMatch": &doc! { "b": 5 } } }, &nested), Some(1));
    assert_eq!(position(&doc! { "a.1.b": 5 }, &nested), Some(2));
    assert_eq!(position(&doc! { "a.1.b": &has_five }, &nested), Some(2));
}

#[test]
fn a_pattern_that_needs_much_stack_still_answers() {
    let matches = |pattern: &str, text: &str| {
        let filter = parse(&doc! { "a": &doc! { "$regex": pattern } });
        filter.matches(doc! { "a": text }.as_raw(), &Context::default()).map_err(|e| e.code())
    };
    let long = "a".repeat(50_000);
    assert_eq!(matches("^(a|b)*$", &long), Ok(true));
    assert_eq!(matches("(a|b)*c", &long[..300]), Ok(false));
    // And one that would take for ever says so.
    assert_eq!(matches("(a+)+$", &format!("{}b", &long[..60])), Err(Code(51156)));
}

fn equalities(filter: &DocBuf) -> Result<Vec<(String, String)>, Code> {
    let filter = parse(filter);
    let found = filter.equalities().map_err(|e| e.code())?;
    Ok(found.into_iter().map(|(path, value)| (path.to_string(), value.to_string())).collect())
}

#[test]
fn an_upsert_takes_over_equalities() {
    let pairs =
        |list: &[(&str, &str)]| Ok(list.iter().map(|(p, v)| (p.to_string(), v.to_string())).collect::<Vec<_>>());
    assert_eq!(equalities(&doc! { "a": 1, "b.c": "x" }), pairs(&[("a", "1"), ("b.c", "\"x\"")]));
    assert_eq!(equalities(&doc! { "a": &doc! { "$in": &array([1, 1]) } }), pairs(&[("a", "1")]));
    assert_eq!(equalities(&doc! { "a": &doc! { "$in": &array([1, 2]) } }), pairs(&[]));
    assert_eq!(equalities(&doc! { "a": &doc! { "$all": &array([1]) } }), pairs(&[("a", "1")]));
    assert_eq!(equalities(&doc! { "$or": &array([&doc! { "a": 1 }]) }), pairs(&[("a", "1")]));
    assert_eq!(equalities(&doc! { "$or": &array([&doc! { "a": 1 }, &doc! { "a": 1 }]) }), pairs(&[]));
    assert_eq!(equalities(&doc! { "a": &doc! { "$gte": 1 } }), pairs(&[]));
}

#[test]
fn an_upsert_refuses_what_it_cannot_honour() {
    let twice = Err(Code::NotSingleValueField);
    assert_eq!(equalities(&doc! { "a": &doc! { "$all": &array([1, 2]) } }), twice);
    assert_eq!(equalities(&doc! { "$and": &array([&doc! { "a": 1 }, &doc! { "a": 1 }]) }), twice);
    assert_eq!(equalities(&doc! { "a": 1, "a.b": 2 }), twice);
    assert_eq!(equalities(&doc! { "a": &doc! { "b": 1 }, "a.c": 2 }), twice);
    assert_eq!(equalities(&doc! { "$expr": true }), Err(Code::QueryFeatureNotAllowed));
}

/// `[1, 5) [x, x]`, with `!` before what needs another look.
fn shown(condition: &DocBuf, multikey: bool) -> String {
    let filter = parse(&doc! { "a": condition });
    let (_, found) = bounds::of(filter.root(), multikey, Collator::SIMPLE).unwrap();
    let Bounds { intervals, exact } = found;
    let text = |value: ValueRef<'_>| value.to_string().replace(".0", "");
    let each = intervals.iter().map(|i| {
        let (open, close) = (if i.low_inclusive { '[' } else { '(' }, if i.high_inclusive { ']' } else { ')' });
        format!("{open}{}, {}{close}", text(i.low.or_null()), text(i.high.or_null()))
    });
    format!("{}{}", if exact { "" } else { "!" }, each.collect::<Vec<_>>().join(" "))
}

#[test]
fn bounds_stay_within_types() {
    assert_eq!(shown(&doc! { "$gt": 5 }, false), "(5, inf]");
    assert_eq!(shown(&doc! { "$lte": 5 }, false), "[-inf, 5]");
    assert_eq!(shown(&doc! { "$gte": "a" }, false), "[\"a\", {})");
    assert_eq!(shown(&doc! { "$lt": true }, false), "[false, true)");
    assert_eq!(shown(&doc! { "$gt": ValueRef::Null }, false), "");
    assert_eq!(shown(&doc! { "$gte": f64::NAN }, false), "[nan, nan]");
    assert_eq!(shown(&doc! { "$lt": ValueRef::MaxKey }, false), "![MinKey, MaxKey]");
    assert_eq!(shown(&doc! { "$gt": &array([1]) }, false), "![MinKey, MaxKey]");
}

#[test]
fn bounds_of_points_and_their_negations() {
    assert_eq!(shown(&doc! { "$in": &array([3, 1, 3]) }, false), "[1, 1] [3, 3]");
    assert_eq!(shown(&doc! { "$eq": ValueRef::Null }, false), "![undefined, undefined] [null, null]");
    assert_eq!(shown(&doc! { "$eq": &array([1, 2]) }, true), "![1, 1] [[ 1, 2 ], [ 1, 2 ]]");
    assert_eq!(shown(&doc! { "$ne": 5 }, true), "![MinKey, 5) (5, MaxKey]");
    assert_eq!(shown(&doc! { "$ne": ValueRef::Null }, false), "![MinKey, undefined) (null, MaxKey]");
    assert_eq!(shown(&doc! { "$ne": ValueRef::Null }, true), "![MinKey, MaxKey]");
    assert_eq!(shown(&doc! { "$exists": false }, false), "![null, null]");
    assert_eq!(shown(&doc! { "$not": &doc! { "$gt": 5 } }, false), "![MinKey, 5] (inf, MaxKey]");
}

#[test]
fn bounds_of_patterns_and_elements() {
    assert_eq!(shown(&doc! { "$regex": "^ab" }, false), "[\"ab\", \"ac\") [/^ab/, /^ab/]");
    assert_eq!(shown(&doc! { "$regex": "^ab.c" }, false), "![\"ab\", \"ac\") [/^ab.c/, /^ab.c/]");
    assert_eq!(shown(&doc! { "$regex": "ab" }, false), "![\"\", {}) [/ab/, /ab/]");
    assert_eq!(shown(&doc! { "$elemMatch": &doc! { "$gt": 1, "$lt": 5 } }, true), "!(1, 5)");
    assert_eq!(shown(&doc! { "$type": "int" }, false), "![nan, inf]");
    assert_eq!(shown(&doc! { "$type": "number" }, false), "[nan, inf]");
    assert_eq!(shown(&doc! { "$type": "array" }, false), "![MinKey, MaxKey]");
}

#[test]
fn a_pull_condition_is_about_one_value() {
    let pulls = |condition: ValueRef<'_>, value: ValueRef<'_>| {
        let predicate = ValuePredicate::parse(condition, &Scope::default()).unwrap();
        predicate.matches(value, &Context::default()).unwrap()
    };
    let (gt, fields, six) = (doc! { "$gt": 5 }, doc! { "b": 1 }, array([6]));
    assert!(pulls((&gt).into(), 6.into()));
    assert!(!pulls((&gt).into(), 5.into()));
    // An array inside the array is looked through once.
    assert!(pulls((&gt).into(), (&six).into()));
    assert!(pulls((&fields).into(), (&doc! { "b": 1, "c": 2 }).into()));
    assert!(!pulls((&fields).into(), 1.into()));
    assert!(pulls((&six).into(), (&six).into()));
    assert!(!pulls(6.into(), (&six).into()));
    assert!(pulls(ValueRef::Regex("^a", ""), "ab".into()));
    let code = |condition: &DocBuf| ValuePredicate::parse(condition.into(), &Scope::default()).unwrap_err().code();
    assert_eq!(code(&doc! { "$expr": 1 }), Code::QueryFeatureNotAllowed);
    assert_eq!(code(&doc! { "$not": &gt }), Code::BadValue);
    assert_eq!(code(&doc! { "$gt": 5, "b": 1 }), Code::BadValue);
}

#[test]
fn an_array_filter_names_one_identifier() {
    let filter = |doc: &DocBuf| ArrayFilter::parse(doc.as_raw(), &Scope::default());
    let context = Context::default();
    let graded = filter(&doc! { "elem.grade": &doc! { "$gte": 85 } }).unwrap();
    assert_eq!(graded.identifier(), "elem");
    assert!(graded.matches((&doc! { "grade": 90 }).into(), &context).unwrap());
    assert!(!graded.matches((&doc! { "grade": 80 }).into(), &context).unwrap());
    assert!(!graded.matches(90.into(), &context).unwrap());
    let code = |doc: &DocBuf| filter(doc).unwrap_err().code();
    assert_eq!(code(&doc! { "e": 1, "f": 1 }), Code::FailedToParse);
    assert_eq!(code(&doc! { "E": 1 }), Code::BadValue);
    assert_eq!(code(&doc! {}), Code::FailedToParse);
    assert_eq!(code(&doc! { "$jsonSchema": &doc! {} }), Code::QueryFeatureNotAllowed);
}

fn explained(filter: &DocBuf, doc: &DocBuf) -> String {
    let filter = parse(filter);
    assert!(!filter.matches(doc.as_raw(), &Context::default()).unwrap());
    let info = filter.explain_failure(doc.as_raw(), &Context::default());
    assert_eq!(info.as_raw().get("failingDocumentId").map(|id| id.to_string()), Some("1".into()));
    info.as_raw().get_doc("details").unwrap_or(RawDoc::EMPTY).to_string()
}

#[test]
fn a_failed_condition_is_explained() {
    let gt = doc! { "$gt": 1, "$lt": 5 };
    assert_eq!(
        explained(&doc! { "a": &gt }, &doc! { "_id": 1, "a": 0 }),
        "{ operatorName: \"$and\", clausesNotSatisfied: [ { index: 0, details: { operatorName: \"$gt\", specifiedAs: \
         { a: { $gt: 1 } }, reason: \"comparison failed\", consideredValue: 0 } } ] }"
    );
    assert_eq!(
        explained(&doc! { "a": &doc! { "$not": &doc! { "$mod": &array([2, 0]) } } }, &doc! { "_id": 1, "a": 4 }),
        "{ operatorName: \"$not\", details: { operatorName: \"$mod\", specifiedAs: { a: { $mod: [ 2, 0 ] } }, \
         reason: \"$mod did evaluate to expected remainder\", consideredValue: 4 } }"
    );
    assert_eq!(
        explained(&doc! { "a": &doc! { "$size": 2 } }, &doc! { "_id": 1, "a": 1 }),
        "{ operatorName: \"$size\", specifiedAs: { a: { $size: 2 } }, reason: \"type did not match\", \
         consideredType: \"int\", expectedType: \"array\", consideredValue: 1 }"
    );
    assert_eq!(
        explained(&doc! { "a": 1 }, &doc! { "_id": 1 }),
        "{ operatorName: \"$eq\", specifiedAs: { a: 1 }, reason: \"field was missing\" }"
    );
}

#[test]
fn a_failed_schema_is_explained() {
    let age = doc! { "bsonType": "int", "minimum": 0, "description": "years" };
    let schema = doc! { "required": &array(["name"]), "properties": &doc! { "age": &age } };
    assert_eq!(
        explained(&doc! { "$jsonSchema": &schema }, &doc! { "_id": 1, "age": -5 }),
        "{ operatorName: \"$jsonSchema\", schemaRulesNotSatisfied: [ { operatorName: \"properties\", \
         propertiesNotSatisfied: [ { propertyName: \"age\", description: \"years\", details: [ { operatorName: \
         \"minimum\", specifiedAs: { minimum: 0 }, reason: \"comparison failed\", consideredValue: -5 } ] } ] }, \
         { operatorName: \"required\", specifiedAs: { required: [ \"name\" ] }, missingProperties: [ \"name\" ] } ] }"
    );
}
