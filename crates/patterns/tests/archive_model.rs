//! Random operations on a collection with the archive pattern and on a plain one: the same replies, the same documents,
//! and the invariant after every step, with runs in between.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{Db, Random, context, json, ns, plain, projection};
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_store::{Mode, Store, Want};
use espalier_value::{DocBuf, ValueRef};

const STAMPS: [&str; 2] = ["archivedAt", "reason"];
const IDS: u64 = 8;

fn by(text: &str) -> Option<Arc<Sort>> {
    Sort::parse(json(text).as_raw(), &Scope::default()).unwrap().map(Arc::new)
}

fn status(random: &mut Random) -> &'static str {
    ["open", "done", "late"][random.below(3) as usize]
}

/// With `named`, only filters that name documents by `_id`.
fn filter(random: &mut Random, named: bool) -> String {
    let id = random.below(IDS);
    match random.below(if named { 4 } else { 10 }) {
        0 => format!("{{_id: {{$in: [{id}, {}]}}}}", random.below(IDS)),
        1 => format!("{{_id: {id}, status: \"{}\"}}", status(random)),
        2 => format!("{{$or: [{{_id: {id}}}, {{_id: {}}}]}}", random.below(IDS)),
        3 => format!("{{_id: {id}}}"),
        4 => format!("{{status: \"{}\"}}", status(random)),
        5 => format!("{{n: {{$gte: {}}}}}", random.below(6)),
        6 => format!("{{u: {}}}", random.below(IDS)),
        7 => format!("{{tags: {}}}", random.below(5)),
        8 => format!("{{_id: {{$gt: {id}}}}}"),
        _ => "{}".to_string(),
    }
}

fn update(random: &mut Random) -> String {
    let n = random.below(9);
    match random.below(9) {
        0 => format!("{{$inc: {{n: {n}}}}}"),
        1 | 2 => format!("{{$set: {{status: \"{}\"}}}}", status(random)),
        3 => format!("{{$set: {{u: {n}}}, $unset: {{tags: 1}}}}"),
        4 => format!("{{$push: {{tags: {n}}}}}"),
        5 => format!("[{{$set: {{n: {{$add: [{{$ifNull: [\"$n\", 0]}}, 1]}}, status: \"{}\"}}}}]", status(random)),
        6 => format!("{{n: {n}, u: {n}, status: \"{}\"}}", status(random)),
        7 => "{$set: {status: \"done\"}}".to_string(),
        _ => "{$rename: {n: \"m\"}}".to_string(),
    }
}

fn show(result: Result<impl std::fmt::Debug, espalier_value::Error>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("error {}", error.code().0),
    }
}

fn all(db: &Db, name: &str) -> Vec<DocBuf> {
    let everything = (0..IDS).map(|id| id.to_string()).collect::<Vec<_>>().join(", ");
    let docs = db.find_with(name, &format!("{{_id: {{$in: [{everything}]}}}}"), |find| find.sort = by("{_id: 1}"));
    docs.unwrap().iter().map(|doc| plain(doc, &STAMPS)).collect()
}

fn run(seed: u64, steps: usize, unique: bool, union: bool) {
    let mut random = Random(seed);
    let db = Db::new();
    let read = if union { "union" } else { "active" };
    let options = format!(
        "{{patterns: [{{archive: {{when: {{status: \"done\"}}, stamp: {{archivedAt: \"$$NOW\", reason: \"age\"}}, \
         batch: 2, read: \"{read}\"}}}}]}}"
    );
    db.create("p", &options).unwrap();
    db.create("q", "{}").unwrap();
    for name in ["p", "q"] {
        let spec = json(&format!("{{key: {{u: 1}}, name: \"u_1\", sparse: true, unique: {unique}}}"));
        let mut tx = db.begin();
        tx.create_indexes(&ns(name), &[espalier_store::IndexSpec::parse(spec.as_raw()).unwrap()]).unwrap();
        tx.commit().unwrap();
    }
    for step in 0..steps {
        let what = one_step(&db, &mut random, union);
        assert_eq!(all(&db, "p"), all(&db, "q"), "seed {seed}, step {step}: {what}");
        let report = db.validate("p", false);
        let valid = matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(true)));
        assert!(valid, "seed {seed}, step {step}: {what}: {report:?}");
    }
}

fn one_step(db: &Db, random: &mut Random, union: bool) -> String {
    match random.below(11) {
        0 | 1 => {
            db.store.run_pattern(&ns("p"), &context()).unwrap().unwrap();
            "run".to_string()
        }
        2 | 3 => {
            let (id, u) = (random.below(IDS), random.below(IDS));
            let with_u = if random.below(2) == 0 { format!(", u: {u}") } else { String::new() };
            let doc = format!("{{_id: {id}, n: {}, status: \"{}\"{with_u}}}", random.below(9), status(random));
            let results = ["p", "q"].map(|name| {
                let done = db.insert(name, &[json(&doc)]).unwrap();
                (done.inserted, done.errors.first().map(|(at, error)| (*at, error.code().0)))
            });
            assert_eq!(results[0], results[1], "insert {doc}");
            format!("insert {doc}")
        }
        4 => {
            let (filter, multi) = (filter(random, !union), random.below(3) == 0);
            let filter = if multi { filter } else { format!("{{_id: {}}}", random.below(IDS)) };
            let results = ["p", "q"].map(|name| show(db.delete(name, &filter, multi)));
            assert_eq!(results[0], results[1], "delete {filter}");
            format!("delete {filter}")
        }
        5 | 6 => find(db, random, union),
        _ => write(db, random, union),
    }
}

fn find(db: &Db, random: &mut Random, union: bool) -> String {
    let filter = filter(random, !union);
    let order = ["{_id: 1}", "{n: -1, _id: 1}", "{status: 1, _id: -1}"][random.below(3) as usize];
    let (skip, limit) = (random.below(3), [None, Some(1), Some(3)][random.below(3) as usize]);
    let shown = ["{archivedAt: 0, reason: 0}", "{n: 1}", "{_id: 0, status: 1}"][random.below(3) as usize];
    let docs = ["p", "q"].map(|name| {
        let docs = db.find_with(name, &filter, |find| {
            (find.sort, find.skip, find.limit) = (by(order), skip, limit);
            find.projection = projection(shown, &filter);
        });
        docs.unwrap()
    });
    assert_eq!(docs[0], docs[1], "find {filter} {order} {skip} {limit:?} {shown}");
    let numbers = ["p", "q"].map(|name| {
        let at = db.begin();
        let parsed = espalier_query::Filter::parse(json(&filter).as_raw(), &Default::default()).unwrap();
        let mut find = espalier_store::Find::new(Arc::new(parsed), context());
        let values = at.distinct(&ns(name), "status", &find).unwrap();
        (find.skip, find.limit) = (skip, limit);
        (at.count(&ns(name), &find).unwrap(), format!("{values:?}"))
    });
    assert_eq!(numbers[0], numbers[1], "count and distinct {filter}");
    format!("find {filter}")
}

fn write(db: &Db, random: &mut Random, union: bool) -> String {
    let (filter, text) = (filter(random, !union), update(random));
    let multi = random.below(4) == 0 && !text.starts_with("{n:");
    let upsert = random.below(4) == 0 && filter.starts_with("{_id: ") && !filter.contains('$');
    let want = [Want::Nothing, Want::Before, Want::After][if multi { 0 } else { random.below(3) as usize }];
    let transaction = random.below(4) == 0;
    let results = ["p", "q"].map(|name| {
        let mut spec = common::update_spec(&filter, &text).unwrap();
        (spec.multi, spec.upsert, spec.want) = (multi, upsert, want);
        // Which of several it is must be defined.
        spec.sort = by("{_id: 1}").filter(|_| !multi);
        let mode = if transaction { Mode::Transaction } else { Mode::Auto };
        let mut tx = db.begin_as(mode, false);
        let done = tx.update(&ns(name), &spec).and_then(|done| tx.commit().map(|_| done));
        show(done.map(|done| {
            let image = done.image.map(|image| plain(&image, &STAMPS));
            (done.matched, done.modified, done.upserted_id, image)
        }))
    });
    let what = format!("update {filter} with {text}, multi {multi}, upsert {upsert}, transaction {transaction}");
    assert_eq!(results[0], results[1], "{what}");
    if multi && results[0].starts_with("error") {
        // Which documents were updated before the one that could not be is not defined.
        let everything = (0..IDS).map(|id| id.to_string()).collect::<Vec<_>>().join(", ");
        for name in ["p", "q"] {
            db.delete(name, &format!("{{_id: {{$in: [{everything}]}}}}"), true).unwrap();
        }
    }
    what
}

#[test]
fn a_union_is_the_same_as_a_plain_collection() {
    for seed in 0..20 {
        run(seed, 70, false, true);
    }
}

#[test]
fn a_union_is_the_same_with_a_unique_index() {
    for seed in 1000..1020 {
        run(seed, 70, true, true);
    }
}

#[test]
fn documents_named_by_id_are_the_same_whatever_is_read() {
    for seed in 2000..2020 {
        run(seed, 70, true, false);
    }
}
