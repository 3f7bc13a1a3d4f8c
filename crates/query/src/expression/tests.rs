//! The lists of operators, and what an expression tells about itself.
#![allow(clippy::unwrap_used)]

use espalier_value::{DocBuf, RawDoc, Value, ValueRef, doc};

use super::{Deps, Env, Expression, FAMILIES, Scope};
use crate::context::Context;

#[test]
fn lists_are_sorted() {
    for family in FAMILIES {
        assert!(family.is_sorted_by(|a, b| a.name < b.name));
    }
}

#[test]
fn no_operator_is_listed_twice() {
    let mut names: Vec<&str> = FAMILIES.iter().flat_map(|family| family.iter()).map(|op| op.name).collect();
    names.sort_unstable();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
}

fn parse(value: &'static str) -> Expression {
    Expression::parse(value.into(), &Scope::default()).unwrap()
}

fn parse_doc(doc: &DocBuf) -> Expression {
    Expression::parse(doc.into(), &Scope::default()).unwrap()
}

fn paths(deps: &Deps) -> Option<Vec<&str>> {
    deps.paths().map(Iterator::collect)
}

#[test]
fn plain_field_paths_are_told() {
    assert_eq!(parse("$a.b").as_field_path().unwrap().as_str(), "a.b");
    assert_eq!(parse("$$ROOT.a").as_field_path().unwrap().as_str(), "a");
    assert!(parse("$$ROOT").as_field_path().is_none());
    assert!(parse("a").as_field_path().is_none());
}

#[test]
fn constants_are_folded() {
    let sum = [ValueRef::Int32(1), ValueRef::Int32(2)].into_iter().collect::<espalier_value::ArrayBuf>();
    let expression = parse_doc(&doc! {"$add": &sum});
    assert!(matches!(expression.as_constant(), Some(Value::Ref(ValueRef::Int32(3)))));
    assert!(!parse_doc(&doc! {"$rand": &DocBuf::new()}).is_constant());
}

#[test]
fn dependencies_are_the_paths_read() {
    let args =
        ["$a.b", "$c", "$$NOW", "$$ROOT.d"].map(ValueRef::String).into_iter().collect::<espalier_value::ArrayBuf>();
    assert_eq!(paths(&parse_doc(&doc! {"$eq": &args_of_two()}).dependencies()), Some(vec!["x", "y"]));
    assert_eq!(paths(&parse_doc(&doc! {"$concatArrays": &args}).dependencies()), Some(vec!["a.b", "c", "d"]));
    assert_eq!(paths(&parse("$$ROOT").dependencies()), None);
    assert!(parse("text").dependencies().is_none());
    // The variable of `$map` is no field, what its input reads is.
    let body = doc! {"input": "$items", "as": "i", "in": "$$i.price"};
    assert_eq!(paths(&parse_doc(&doc! {"$map": &body}).dependencies()), Some(vec!["items"]));
}

fn args_of_two() -> espalier_value::ArrayBuf {
    ["$x", "$y"].map(ValueRef::String).into_iter().collect()
}

#[test]
fn field_paths_lend_from_the_document() {
    let inner = doc! {"b": "text"};
    let root = doc! {"a": &inner};
    let (expression, context) = (parse("$a.b"), Context::default());
    let env = Env::new(root.as_raw(), &context);
    let value = expression.eval(&env).unwrap();
    let Value::Ref(ValueRef::String(text)) = value else { panic!("copied: {value:?}") };
    assert!(root.as_bytes().as_ptr_range().contains(&text.as_ptr()));
}

#[test]
fn variables_of_the_command_are_seen() {
    let mut context = Context::default();
    context.lets.push(("x".into(), Value::from(5)));
    let expression = Expression::parse("$$x".into(), &Scope::of(&context)).unwrap();
    let env = Env::new(RawDoc::EMPTY, &context);
    assert!(matches!(expression.eval(&env).unwrap(), Value::Ref(ValueRef::Int32(5))));
}
