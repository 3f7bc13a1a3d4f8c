//! Plans: what an index can answer is never scanned for, and every plan gives what a scan gives.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use espalier_engine::Engine;
use espalier_query::expression::Scope;
use espalier_query::projection::{Kind, Projection};
use espalier_store::{Begin, Find, Hint, Mode, Store, Verbosity};
use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};

fn filled() -> Engine {
    let engine = engine();
    let docs: Vec<DocBuf> = (0..1000)
        .map(|i| doc! { "_id": i, "a": i % 10, "b": i % 7, "c": i, "tags": &array(&[i % 3, i % 5]) })
        .collect();
    insert(&engine, &docs);
    let specs = [
        index("a_1_b_-1_c_1", &[("a", 1), ("b", -1), ("c", 1)], false),
        index("c_1", &[("c", 1)], true),
        index("tags_1", &[("tags", 1)], false),
    ];
    begin(&engine).create_indexes(&ns(), &specs).unwrap();
    engine
}

fn range(op: &str, value: i32) -> DocBuf {
    let mut doc = DocBuf::new();
    doc.append(op, value);
    doc
}

#[test]
fn a_range_reads_only_its_entries() {
    let engine = filled();
    let (stages, keys, docs) = plan(&engine, &find(&doc! { "c": &doc! { "$gte": 10, "$lt": 20 } }));
    assert_eq!((stages.as_slice(), keys, docs), (["FETCH".to_string(), "IXSCAN".into()].as_slice(), 10, 10));
}

#[test]
fn compound_equality_and_sort_need_no_sort() {
    let engine = filled();
    let mut find = sorted(&doc! { "a": 3 }, &doc! { "b": 1 });
    find.limit = Some(5);
    let (stages, keys, _) = plan(&engine, &find);
    assert_eq!(stages, ["LIMIT", "FETCH", "IXSCAN"]);
    assert_eq!(keys, 5);
}

#[test]
fn in_and_sort_are_merged() {
    let engine = filled();
    let values = array(&[2, 4, 6]);
    let mut find = sorted(&doc! { "a": &doc! { "$in": &values } }, &doc! { "b": -1, "c": 1 });
    find.limit = Some(10);
    let (stages, _, docs) = plan(&engine, &find);
    assert_eq!(stages, ["LIMIT", "FETCH", "SORT_MERGE"]);
    assert!(docs <= 13, "{docs}");
    assert_eq!(ids(&engine, &find), expected(&engine, &find));
}

#[test]
fn a_gap_in_the_key_is_skipped_over() {
    let engine = filled();
    let f = find(&doc! { "a": &doc! { "$gte": 2, "$lte": 4 }, "b": 3 });
    let (_, keys, docs) = plan(&engine, &f);
    assert_eq!(docs, ids(&engine, &f).len() as i32);
    assert!(keys < docs + 12, "{keys} keys for {docs} documents");
}

#[test]
fn covered_queries_touch_no_document() {
    let engine = filled();
    let mut f = find(&doc! { "c": &range("$lt", 50) });
    let spec = doc! { "_id": 0, "c": 1 };
    f.projection = Some(Arc::new(Projection::parse(spec.as_raw(), &Scope::default(), Kind::Find).unwrap()));
    let (stages, keys, docs) = plan(&engine, &f);
    assert_eq!(
        (stages.as_slice(), keys, docs),
        (["PROJECTION_COVERED".to_string(), "IXSCAN".into()].as_slice(), 50, 0)
    );
    assert!(matches!(all(&engine, &f)[7].as_raw().get("c"), Some(ValueRef::Int32(7))));
}

#[test]
fn a_disjunction_is_a_union() {
    let engine = filled();
    let mut branches = ArrayBuf::new();
    branches.push(&doc! { "c": 5 }).push(&doc! { "a": 5, "b": 5 });
    let f = find(&doc! { "$or": &branches });
    let (stages, _, docs) = plan(&engine, &f);
    assert_eq!(stages, ["FETCH", "OR"]);
    assert!(docs < 40);
    let mut found = ids(&engine, &f);
    found.sort_unstable();
    assert_eq!(found, expected(&engine, &f));
}

#[test]
fn a_descending_sort_reads_an_ascending_index_backwards() {
    let engine = filled();
    let mut f = sorted(&DocBuf::new(), &doc! { "c": -1 });
    f.limit = Some(3);
    let (stages, keys, _) = plan(&engine, &f);
    assert_eq!((stages.as_slice(), keys), (["LIMIT".to_string(), "FETCH".into(), "IXSCAN".into()].as_slice(), 3));
    assert_eq!(ids(&engine, &f), [999, 998, 997]);
}

#[test]
fn a_partial_index_is_used_only_where_it_holds_everything() {
    let engine = filled();
    let mut spec = doc! { "key": &doc! { "b": 1 }, "name": "b_partial" };
    spec.append("partialFilterExpression", &doc! { "c": &range("$gt", 500) });
    let spec = espalier_store::IndexSpec::parse(spec.as_raw()).unwrap();
    begin(&engine).create_indexes(&ns(), &[spec]).unwrap();
    let inside = find(&doc! { "b": 2, "c": &range("$gt", 600) });
    let (_, _, docs) = plan(&engine, &inside);
    assert!(docs < 200, "{docs}");
    let outside = find(&doc! { "b": 2 });
    assert_eq!(plan(&engine, &outside).0, ["COLLSCAN"]);
    assert_eq!(ids(&engine, &outside).len(), expected(&engine, &outside).len());
}

/// What a scan of the collection gives, in the order asked for (by `_id` without a sort).
fn expected(engine: &Engine, find: &Find) -> Vec<i64> {
    let mut natural = find.clone();
    natural.hint = Some(Hint::Natural { reverse: false });
    let mut found = ids(engine, &natural);
    if find.sort.is_none() {
        found.sort_unstable();
    }
    found
}

/// xorshift64*: the same filters every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }
}

#[test]
fn every_plan_gives_what_a_scan_gives() {
    let engine = filled();
    let mut random = Random(3);
    for round in 0..120 {
        let mut doc = DocBuf::new();
        for field in ["a", "b", "c", "tags"] {
            if random.below(2) == 0 {
                continue;
            }
            let bound = random.below(if field == "c" { 1000 } else { 8 }) as i32;
            let op = ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"][random.below(6) as usize];
            if random.below(3) == 0 {
                let mut both = range("$gte", bound);
                both.append("$lte", bound + 2);
                doc.append(field, &both);
            } else {
                doc.append(field, &range(op, bound));
            }
        }
        let mut f = match random.below(3) {
            0 => find(&doc),
            1 => sorted(&doc, &doc! { "b": 1, "c": -1 }),
            _ => sorted(&doc, &doc! { "a": -1, "b": 1, "c": -1 }),
        };
        if f.sort.is_some() && random.below(2) == 0 {
            f.limit = Some(random.below(20) + 1);
        }
        let mut found = ids(&engine, &f);
        if f.sort.is_none() {
            found.sort_unstable();
        }
        assert_eq!(found, expected(&engine, &f), "round {round}: {doc:?} {:?}", plan(&engine, &f));
        // By every index that may be asked for, too.
        for name in ["a_1_b_-1_c_1", "c_1", "tags_1"] {
            let mut hinted = f.clone();
            hinted.hint = Some(Hint::Name(name.into()));
            let mut found = ids(&engine, &hinted);
            if f.sort.is_none() {
                found.sort_unstable();
            }
            assert_eq!(found, expected(&engine, &f), "round {round} by {name}: {doc:?}");
        }
    }
}

/// What a value was before is in the way of whoever walks an index, and is not walked to the end just to plan.
#[test]
fn an_index_full_of_deleted_entries_is_not_walked_to_plan() {
    let engine = engine();
    insert(&engine, &[doc! { "_id": 1, "a": 1, "b": 0 }]);
    let specs = [index("a_1_b_1", &[("a", 1), ("b", 1)], false), index("a_1", &[("a", 1)], false)];
    begin(&engine).create_indexes(&ns(), &specs).unwrap();
    let chosen = |engine: &Engine| {
        let explained = begin(engine).explain(&ns(), &find(&doc! { "a": 1 }), Verbosity::QueryPlanner).unwrap();
        let plan = explained.as_raw().get_doc("queryPlanner").and_then(|planner| planner.get_doc("winningPlan"));
        plan.and_then(|plan| plan.get_doc("inputStage")?.get_str("indexName")).map(str::to_string)
    };
    assert_eq!(chosen(&engine).as_deref(), Some("a_1_b_1"));
    let inc = update(&doc! { "_id": 1 }, &doc! { "$inc": &doc! { "b": 1 } });
    for _ in 0..3_000 {
        begin(&engine).update(&ns(), &inc).unwrap();
    }
    assert_eq!(chosen(&engine).as_deref(), Some("a_1"));
    assert_eq!(ids(&engine, &find(&doc! { "a": 1 })), [1]);
    // The same with what a transaction deleted itself.
    let own = crate::engine();
    insert(&own, &(0..3_000).map(|i| doc! { "_id": i, "a": 1, "b": i }).collect::<Vec<_>>());
    begin(&own).create_indexes(&ns(), &specs).unwrap();
    let context = context();
    let mut tx = own.begin(Begin { mode: Mode::Transaction, want_changes: false, raw: true, context }).unwrap();
    tx.delete(&ns(), &delete(&doc! { "_id": &doc! { "$gt": 0 } }, true)).unwrap();
    let mut cursor = tx.find(&ns(), &find(&doc! { "a": 1 })).unwrap();
    assert!(cursor.advance().unwrap() && !cursor.advance().unwrap());
}
