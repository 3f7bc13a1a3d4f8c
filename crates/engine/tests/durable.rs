//! A folder opened again: documents, indexes, options and counts are as they were.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;

use common::*;
use espalier_engine::{Engine, EngineOptions};
use espalier_store::Store;
use espalier_value::{DocBuf, doc};

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("espalier-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn open(&self) -> Engine {
        Engine::open(EngineOptions { folder: Some(self.0.clone()), ..EngineOptions::default() }).unwrap().0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn everything_is_there_after_reopening() {
    let folder = Folder::new("reopen");
    let engine = folder.open();
    begin(&engine).create_indexes(&ns(), &[index("a_1", &[("a", 1)], false)]).unwrap();
    let docs: Vec<DocBuf> = (0..1000).map(|i| doc! { "_id": i, "a": i % 10 }).collect();
    insert(&engine, &docs);
    let mut last = begin(&engine);
    last.delete(&ns(), &delete(&doc! { "_id": 3 }, false)).unwrap();
    engine.wait_durable(last.commit().unwrap()).unwrap();
    engine.close().unwrap();
    drop(engine);
    let engine = folder.open();
    assert_eq!(begin(&engine).count(&ns(), &find(&DocBuf::new())).unwrap(), 999);
    assert_eq!(begin(&engine).count(&ns(), &find(&doc! { "a": 3 })).unwrap(), 99);
    assert_eq!(begin(&engine).indexes(&ns()).unwrap().len(), 2);
    insert(&engine, &[doc! { "_id": 2000, "a": 3 }]);
    assert_eq!(ids(&engine, &find(&DocBuf::new())).last(), Some(&2000));
    assert_valid(&engine);
}

#[test]
fn a_folder_in_use_is_refused() {
    let folder = Folder::new("lock");
    let _engine = folder.open();
    let again = Engine::open(EngineOptions { folder: Some(folder.0.clone()), ..EngineOptions::default() });
    let message = again.err().unwrap().to_string();
    assert!(message.contains("in use"), "{message}");
}

#[test]
fn a_sort_past_its_memory_goes_to_disk() {
    let folder = Folder::new("spill");
    let options =
        EngineOptions { folder: Some(folder.0.clone()), sort_bytes_max: 64 << 10, ..EngineOptions::default() };
    let engine = Engine::open(options).unwrap().0;
    let docs: Vec<DocBuf> =
        (0..3000).map(|i| doc! { "_id": i, "k": (i * 7919) % 3000, "pad": "x".repeat(100).as_str() }).collect();
    insert(&engine, &docs);
    let by_k = sorted(&DocBuf::new(), &doc! { "k": 1 });
    let found = ids(&engine, &by_k);
    let expected: Vec<i64> = (0..3000).map(|k| (0..3000).find(|i| (i * 7919) % 3000 == k).unwrap()).collect();
    assert_eq!(found, expected);
    let mut in_memory = by_k;
    in_memory.allow_disk_use = false;
    let mut cursor = begin(&engine).find(&ns(), &in_memory).unwrap();
    assert_eq!(cursor.advance().unwrap_err().code(), espalier_value::Code::QueryExceededMemoryLimitNoDiskUseAllowed);
}

#[test]
fn an_index_stays_multikey_after_a_failed_first_try() {
    let folder = Folder::new("multikey");
    let engine = folder.open();
    let specs = [index("a_1", &[("a", 1)], false), index("u_1", &[("u", 1)], true)];
    begin(&engine).create_indexes(&ns(), &specs).unwrap();
    insert(&engine, &[doc! { "_id": 1, "u": 1 }]);
    // Refused for its `u`, after the index on `a` has seen the array.
    assert_eq!(insert(&engine, &[doc! { "_id": 2, "u": 1, "a": &array(&[1, 9]) }]).inserted, 0);
    assert_eq!(insert(&engine, &[doc! { "_id": 3, "u": 3, "a": &array(&[1, 9]) }]).inserted, 1);
    engine.close().unwrap();
    drop(engine);
    let engine = folder.open();
    // An element above and one below: only a multikey index may not intersect the two bounds.
    let found = ids(&engine, &find(&doc! { "a": &doc! { "$gt": 4, "$lt": 6 } }));
    assert_eq!(found, [3]);
    assert_valid(&engine);
}

#[test]
fn an_index_learns_of_an_array_that_changes_no_entry() {
    let folder = Folder::new("wrapped");
    let engine = folder.open();
    begin(&engine).create_indexes(&ns(), &[index("a_1", &[("a", 1)], false)]).unwrap();
    insert(&engine, &[doc! { "_id": 1, "a": 5 }]);
    // `5` and `[5]` have the same entry, but only the first could be answered from the index alone.
    let wrap = doc! { "$set": &doc! { "a": &array(&[5]) } };
    begin(&engine).update(&ns(), &update(&doc! { "_id": 1 }, &wrap)).unwrap();
    let mut covered = find(&doc! { "a": 5 });
    let only_a = doc! { "a": 1, "_id": 0 };
    covered.projection = Some(std::sync::Arc::new(
        espalier_query::projection::Projection::parse(
            only_a.as_raw(),
            &Default::default(),
            espalier_query::projection::Kind::Find,
        )
        .unwrap(),
    ));
    assert_eq!(all(&engine, &covered), [doc! { "a": &array(&[5]) }]);
    engine.close().unwrap();
    drop(engine);
    let engine = folder.open();
    assert_eq!(all(&engine, &covered), [doc! { "a": &array(&[5]) }]);
    assert_valid(&engine);
}
