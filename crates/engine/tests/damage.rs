//! Damaged files, seen through the engine: an error that names the file and says what to do, never a wrong answer and
//! never a panic.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{all, array, begin, find, index, insert, ns};
use espalier_engine::{Engine, EngineOptions};
use espalier_kv::{Disk, MemDisk, Options, Rng};
use espalier_store::{Hint, Store};
use espalier_value::{DocBuf, Result, ValueRef, doc};

fn open(disk: &Arc<MemDisk>) -> Result<Engine> {
    let options = Options { memtable_bytes: 16 << 10, background: false, ..Options::tiny() };
    Engine::open_on(disk.clone(), options, EngineOptions::default()).map(|(engine, _)| engine)
}

/// A collection with indexes, most of it in runs, the end of it only in the log.
fn build() -> Arc<MemDisk> {
    let disk = Arc::new(MemDisk::new());
    let engine = open(&disk).unwrap();
    begin(&engine).create_indexes(&ns(), &[index("a_1", &[("a", 1)], false), index("k_1", &[("k", 1)], true)]).unwrap();
    for batch in 0..8 {
        let documents = |id: i32| doc! { "_id": id, "a": &array(&[id % 7, id]), "k": id, "s": "x".repeat(40).as_str() };
        let docs: Vec<DocBuf> = (batch * 40..batch * 40 + 40).map(documents).collect();
        insert(&engine, &docs);
        if batch < 6 {
            engine.flush().unwrap();
        }
    }
    engine.close().unwrap();
    disk
}

/// Everything a client could read: by scan, through each index, and the counts.
fn read(disk: &Arc<MemDisk>) -> Result<Vec<Vec<DocBuf>>> {
    let engine = open(disk)?;
    let mut answers = Vec::new();
    for hint in [Hint::Natural { reverse: false }, Hint::Name("a_1".into()), Hint::Name("k_1".into())] {
        let mut everything = find(&DocBuf::new());
        everything.hint = Some(hint);
        let mut cursor = begin(&engine).find(&ns(), &everything)?;
        let mut found = Vec::new();
        while cursor.advance()? {
            found.push(DocBuf::from_raw(cursor.doc()));
        }
        answers.push(found);
    }
    let count = begin(&engine).count(&ns(), &find(&DocBuf::new()))?;
    answers.push(vec![doc! { "count": count as i64 }]);
    Ok(answers)
}

#[test]
fn a_flipped_byte_is_an_error_that_helps_or_changes_nothing() {
    let disk = build();
    let right = read(&Arc::new(disk.crash(0))).unwrap();
    assert_eq!(right[0].len(), 320);
    let mut rng = Rng::new(3);
    let mut noticed: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..400 {
        // A fresh copy each time: opening writes. Everything was synced, so nothing of it is lost.
        let copy = Arc::new(disk.crash(0));
        let names = copy.list().unwrap();
        let name = &names[rng.below(names.len() as u64) as usize];
        let len = copy.open(name).unwrap().len().unwrap();
        if len == 0 {
            continue;
        }
        let offset = rng.below(len);
        copy.damage(name, offset, 1 << rng.below(8));
        match read(&copy) {
            Ok(found) => assert!(found == right, "{name} at {offset}: a wrong answer"),
            Err(error) => {
                let message = error.to_string();
                let helps = message.contains(name.as_str()) && message.contains("byte") && message.contains("restore");
                // A damaged version number reads as another version of the format.
                assert!(helps || message.contains("storage format"), "{name} at {offset}: {message}");
                *noticed.entry(name.rsplit('.').next().unwrap().to_owned()).or_default() += 1;
            }
        }
    }
    assert!(["log", "run", "MANIFEST"].iter().all(|kind| noticed.get(*kind) > Some(&10)), "{noticed:?}");
}

#[test]
fn validate_reports_what_is_damaged() {
    let disk = build();
    let engine = open(&disk).unwrap();
    // Once read, the collection's own blocks are in the cache; only the full check looks at the disk again.
    assert_eq!(all(&engine, &find(&DocBuf::new())).len(), 320);
    for name in disk.list().unwrap().iter().filter(|name| name.ends_with(".run")) {
        disk.damage(name, 20, 0xff);
    }
    let report = begin(&engine).validate(&ns(), true, false).unwrap();
    assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(false))), "{report:?}");
    assert!(format!("{report:?}").contains("is damaged at byte"), "{report:?}");
}
