//! The list of accumulators, and that merging partial states gives what one state would have given.
#![allow(clippy::unwrap_used)]

use espalier_value::{DocBuf, RawDoc, ValueRef, compare, doc};

use super::{ALL, Accumulator, parse};
use crate::context::Context;
use crate::expression::{Env, Scope};

#[test]
fn list_is_sorted() {
    assert!(ALL.is_sorted_by(|a, b| a.name < b.name));
}

fn values() -> Vec<DocBuf> {
    let mut docs = vec![
        doc! {"v": 3},
        doc! {"v": 1_i64 << 53},
        doc! {"v": 0.1},
        doc! {"v": 2.5},
        doc! {"v": "text"},
        doc! {"v": ValueRef::Null},
        doc! {},
        doc! {"v": -7},
        doc! {"v": 3.0},
    ];
    for (at, doc) in docs.iter_mut().enumerate() {
        doc.append("at", at as i32);
    }
    docs
}

fn specs() -> Vec<DocBuf> {
    let by_value = doc! {"v": 1, "at": -1};
    let sorted = doc! {"sortBy": &by_value, "output": "$at"};
    let mut sorted_n = sorted.clone();
    sorted_n.append("n", 3);
    let n = doc! {"n": 3, "input": "$v"};
    let mut specs: Vec<DocBuf> = ["$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$addToSet"]
        .iter()
        .map(|name| {
            let mut doc = DocBuf::new();
            doc.append(name, "$v");
            doc
        })
        .collect();
    for (name, spec) in [("$count", &DocBuf::new()), ("$top", &sorted), ("$bottom", &sorted), ("$topN", &sorted_n)]
        .into_iter()
        .chain([("$bottomN", &sorted_n), ("$firstN", &n), ("$lastN", &n), ("$minN", &n), ("$maxN", &n)])
    {
        let mut doc = DocBuf::new();
        doc.append(name, spec);
        specs.push(doc);
    }
    specs
}

#[test]
fn merging_partial_states_changes_nothing() {
    let context = Context::default();
    let docs = values();
    for spec_doc in specs() {
        let spec = parse("x", (&spec_doc).into(), &Scope::default()).unwrap();
        let make = || spec.make(RawDoc::EMPTY, &context).unwrap();
        let feed = |state: &mut super::State, docs: &[DocBuf]| {
            for doc in docs {
                let value = spec.expression().eval(&Env::new(doc.as_raw(), &context)).unwrap();
                state.push(value.as_ref()).unwrap();
            }
        };
        let mut whole = make();
        feed(&mut whole, &docs);
        let expected = whole.finish();
        for split in 0..=docs.len() {
            let (mut left, mut right) = (make(), make());
            feed(&mut left, &docs[..split]);
            feed(&mut right, &docs[split..]);
            left.merge(right.partial().or_null()).unwrap();
            let merged = left.finish();
            assert!(
                compare(merged.or_null(), expected.or_null()).is_eq(),
                "{spec_doc:?} split at {split}: {merged:?} instead of {expected:?}"
            );
        }
    }
}

#[test]
fn whole_sums_are_taken_back_exactly() {
    let spec_doc = doc! {"$sum": "$v"};
    let spec = parse("x", (&spec_doc).into(), &Scope::default()).unwrap();
    let mut state = spec.make(RawDoc::EMPTY, &Context::default()).unwrap();
    for v in [ValueRef::Int32(5), ValueRef::Int64(i64::MAX), ValueRef::Int64(i64::MAX)] {
        state.push(Some(v)).unwrap();
    }
    assert!(state.retract(Some(ValueRef::Int64(i64::MAX))));
    assert!(state.retract(Some(ValueRef::Int64(i64::MAX))));
    assert!(state.retract(Some(ValueRef::String("not a number"))));
    assert!(matches!(state.finish().or_null(), ValueRef::Int32(5)));
    assert!(!state.retract(Some(ValueRef::Double(1.5))));
}

#[test]
fn arrays_of_one_group_are_limited() {
    let spec_doc = doc! {"$push": "$v"};
    let spec = parse("x", (&spec_doc).into(), &Scope::default()).unwrap();
    let mut state = spec.make(RawDoc::EMPTY, &Context::default()).unwrap();
    let large = "x".repeat(30 << 20);
    let results: Vec<bool> = (0..4).map(|_| state.push(Some(ValueRef::String(&large))).is_ok()).collect();
    assert_eq!(results, [true, true, true, false]);
}
