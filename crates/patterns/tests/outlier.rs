//! The outlier pattern by example: each case that hand-written overflow code gets wrong, and the pattern's own rules.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::followers::{SMALL, followers, number, users, with_followers};
use common::{Db, json, ns, update_spec};
use espalier_store::{Mode, Remembered, Statement, Store, Transaction};
use espalier_value::{DocBuf, ValueRef};

/// Sixteen clients add followers to one user at the same time.
fn race(db: &Arc<Db>, each: i32) {
    std::thread::scope(|scope| {
        for client in 0..16 {
            let db = db.clone();
            scope.spawn(move || {
                for i in 0..each {
                    let update = format!("{{$push: {{followers: {}}}}}", client * 1_000 + i);
                    assert_eq!(db.update("users", "{_id: 1}", &update).unwrap().modified, 1);
                }
            });
        }
    });
}

#[test]
fn b1_b2_b3_racing_clients_lose_nothing_and_keep_every_limit() {
    let db = Arc::new(users());
    db.insert("users", &[with_followers(1, 0)]).unwrap();
    race(&db, 40);
    let doc = &db.find("users", "{_id: 1}")[0];
    let mut all = followers(doc);
    assert_eq!((all.len(), number(doc, "followerCount"), number(doc, "overflowCount")), (640, 640, 63));
    // What one client added is there in its order.
    for client in 0..16 {
        let own: Vec<i32> = all.iter().copied().filter(|n| n / 1_000 == client).collect();
        assert_eq!(own, (0..40).map(|i| client * 1_000 + i).collect::<Vec<_>>());
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 640);
    db.assert_valid("users");
}

#[test]
fn b4_b5_a_count_that_drifted_is_found_and_mended_and_nothing_wedges() {
    let db = users();
    db.insert("users", &[with_followers(1, 19)]).unwrap();
    let mut raw = db.begin_as(Mode::Auto, true);
    let damage = update_spec("{_id: 1}", "{$inc: {followerCount: -2}}").unwrap();
    raw.update(&ns("users"), &damage).unwrap();
    raw.commit().unwrap();
    let report = db.validate("users", false);
    let text = format!("{report:?}");
    assert!(text.contains("'followerCount' is 17 and should be 19"), "{text}");
    // Adding goes on, whatever the count says.
    for i in 100..105 {
        db.update("users", "{_id: 1}", &format!("{{$push: {{followers: {i}}}}}")).unwrap();
    }
    db.validate("users", true);
    db.assert_valid("users");
    assert_eq!(number(&db.find("users", "{_id: 1}")[0], "followerCount"), 24);
    // The same with what a batch says of its own size.
    let mut raw = db.begin_as(Mode::Auto, true);
    let damage = update_spec("{batchNumber: 2}", "{$inc: {count: -3}}").unwrap();
    assert_eq!(raw.update(&ns("followerOverflow"), &damage).unwrap().modified, 1);
    raw.commit().unwrap();
    for i in 105..108 {
        db.update("users", "{_id: 1}", &format!("{{$push: {{followers: {i}}}}}")).unwrap();
    }
    db.validate("users", true);
    db.assert_valid("users");
    assert_eq!(followers(&db.find("users", "{_id: 1}")[0]), (0..19).chain(100..108).collect::<Vec<_>>());
}

#[test]
fn b6_what_is_not_committed_has_not_happened() {
    let db = users();
    db.insert("users", &[with_followers(1, 10)]).unwrap();
    let mut tx = db.begin_as(Mode::Transaction, false);
    tx.update(&ns("users"), &update_spec("{_id: 1}", "{$push: {followers: 99}}").unwrap()).unwrap();
    let inside = common::find(&*tx, "users", "{_id: 1}", |_| {}).unwrap();
    assert_eq!(followers(&inside[0]).last(), Some(&99));
    tx.abort();
    assert_eq!(followers(&db.find("users", "{_id: 1}")[0]).len(), 10);
    assert!(db.raw("followerOverflow", "{}").is_empty());
    db.assert_valid("users");
}

#[test]
fn b7_a_set_across_batches_and_a_retry_that_is_remembered() {
    let db = users();
    db.insert("users", &[with_followers(1, 35)]).unwrap();
    let done = db.update("users", "{_id: 1}", "{$addToSet: {followers: {$each: [3, 17, 34, 35]}}}").unwrap();
    assert_eq!(done.modified, 1);
    assert_eq!(number(&db.find("users", "{_id: 1}")[0], "followerCount"), 36);
    assert_eq!(db.update("users", "{_id: 1}", "{$addToSet: {followers: 20}}").unwrap().modified, 0);
    let statement = Statement { session: [7; 16], txn_number: 5, id: 0 };
    db.update_with("users", "{_id: 1}", "{$push: {followers: 1}}", |update| update.statement = Some(statement))
        .unwrap();
    let remembered = db.store.remembered(&[7; 16], 5).unwrap();
    assert!(matches!(&remembered[..], [Remembered::Updated(0, done)] if done.modified == 1), "{remembered:?}");
}

#[test]
fn b11_a_missing_user_and_a_missing_array() {
    let db = users();
    assert_eq!(db.update("users", "{_id: 9}", "{$push: {followers: 1}}").unwrap().matched, 0);
    db.insert("users", &[json("{_id: 2, name: \"x\"}")]).unwrap();
    assert_eq!(db.update("users", "{_id: 2}", "{$push: {followers: 1}}").unwrap().modified, 1);
    assert_eq!(followers(&db.find("users", "{_id: 2}")[0]), [1]);
    db.assert_valid("users");
}

#[test]
fn b12_b13_b14_a_migration_while_clients_write() {
    let db = Arc::new(Db::new());
    db.create("users", "{}").unwrap();
    let docs: Vec<DocBuf> = (0..40).map(|i| with_followers(i, i as usize)).collect();
    db.insert("users", &docs).unwrap();
    let stop = AtomicBool::new(false);
    let added = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let (db, stop) = (db.clone(), &stop);
                scope.spawn(move || {
                    let mut added = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let id = (client * 5 + added) % 40;
                        let update = format!("{{$push: {{followers: {}}}}}", 1_000 * (client + 1) + added);
                        db.update("users", &format!("{{_id: {id}}}"), &update).unwrap();
                        db.update("users", &format!("{{_id: {id}}}"), "{$pull: {followers: 0}}").unwrap();
                        added += 1;
                    }
                    added
                })
            })
            .collect();
        // Whatever goes wrong, the clients end.
        let changes = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            db.modify("users", SMALL).unwrap();
            db.assert_valid("users");
            db.modify("users", "{}").unwrap();
            db.modify("users", SMALL).unwrap();
        }));
        stop.store(true, Ordering::Relaxed);
        changes.unwrap();
        clients.into_iter().map(|client| client.join().unwrap()).sum::<i32>()
    });
    db.assert_valid("users");
    let mut news: Vec<i32> =
        db.find("users", "{}").iter().flat_map(followers).filter(|follower| *follower >= 1_000).collect();
    news.sort_unstable();
    let distinct = {
        let mut once = news.clone();
        once.dedup();
        once.len()
    };
    assert_eq!((news.len(), distinct), (added as usize, added as usize));
}

#[test]
fn b17_a_delete_takes_the_batches_along() {
    let db = users();
    db.insert("users", &[with_followers(1, 50)]).unwrap();
    assert_eq!(db.delete("users", "{_id: 1}", false).unwrap(), 1);
    assert!(db.raw("followerOverflow", "{}").is_empty());
    db.insert("users", &[with_followers(1, 2)]).unwrap();
    assert_eq!(followers(&db.find("users", "{_id: 1}")[0]), [0, 1]);
}

#[test]
fn b20_the_flag_the_counts_and_the_batch_are_one_commit_and_bytes_bound_a_batch() {
    let db = Db::new();
    db.create(
        "users",
        "{patterns: [{outlier: {array: \"followers\", threshold: 5, batchSize: 1000, batchBytes: 2048}}]}",
    )
    .unwrap();
    db.insert("users", &[json("{_id: 1, followers: []}")]).unwrap();
    let text = "x".repeat(300);
    for n in 0..40 {
        db.update("users", "{_id: 1}", &format!("{{$push: {{followers: \"{n} {text}\"}}}}")).unwrap();
        // At every moment, whatever was written last.
        db.assert_valid("users");
    }
    assert!(db.raw("followerOverflow", "{}").len() > 4);
    assert!(db.raw("followerOverflow", "{}").iter().all(|batch| batch.len_bytes() < 2_400));
}

#[test]
fn a7_an_array_that_shrinks_folds_back_at_half_the_threshold() {
    let db = users();
    db.insert("users", &[with_followers(1, 25)]).unwrap();
    // Seven elements would fit into the main document, but more than half the threshold stays in batches.
    for (keep_from, batches) in [(18, 1), (19, 1), (20, 0)] {
        db.update("users", "{_id: 1}", &format!("{{$pull: {{followers: {{$lt: {keep_from}}}}}}}")).unwrap();
        let doc = &db.find("users", "{_id: 1}")[0];
        assert_eq!(followers(doc), (keep_from..25).collect::<Vec<_>>());
        assert_eq!(number(doc, "overflowCount"), batches);
        assert!(matches!(doc.as_raw().get("hasOverflow"), Some(ValueRef::Bool(flag)) if flag == (batches > 0)));
        db.assert_valid("users");
    }
}

#[test]
fn owned_fields_are_the_patterns_alone() {
    let db = users();
    db.insert("users", &[with_followers(1, 12)]).unwrap();
    for update in [
        "{$set: {followerCount: 1}}",
        "{$inc: {overflowCount: 1}}",
        "{$unset: {hasOverflow: 1}}",
        "{$rename: {name: \"followerCount\"}}",
        "[{$set: {followerCount: 99}}]",
        "{name: \"x\", followerCount: 99}",
    ] {
        let error = db.update("users", "{_id: 1}", update).unwrap_err();
        assert!(error.message().contains("belongs to the pattern 'outlier'"), "{update}: {error}");
    }
    let wrong = db.insert("users", &[json("{_id: 5, followers: [], followerCount: 7}")]).unwrap();
    assert_eq!((wrong.inserted, wrong.errors.len()), (0, 1));
    // A document that was read may be written back as it is.
    let mut back = json("{followers: [1, 2], followerCount: 12, hasOverflow: true, overflowCount: 1}");
    back.append("name", "x");
    let spec = espalier_query::update::Update::parse(ValueRef::Document(back.as_raw()), &[], &Default::default());
    let mut update = update_spec("{_id: 1}", "{$set: {a: 1}}").unwrap();
    update.update = Arc::new(spec.unwrap());
    let mut tx = db.begin();
    assert_eq!(tx.update(&ns("users"), &update).unwrap().modified, 1);
    tx.commit().unwrap();
    assert_eq!(number(&db.find("users", "{_id: 1}")[0], "followerCount"), 2);
    db.assert_valid("users");
}

#[test]
fn what_cannot_be_done_exactly_is_refused_by_name() {
    let db = users();
    db.insert("users", &[with_followers(1, 12)]).unwrap();
    let refused = db.find_with("users", "{}", |find| find.show_record_id = true).unwrap_err();
    assert!(refused.message().contains("'outlier'"), "{refused}");
    let spec = json("{key: {followers: 1}, name: \"f\", unique: true}");
    let spec = espalier_store::IndexSpec::parse(spec.as_raw()).unwrap();
    let refused = db.begin().create_indexes(&ns("users"), &[spec]).unwrap_err();
    assert!(refused.message().contains("'outlier'"), "{refused}");
    let refused = db.insert("followerOverflow", &[json("{_id: 1}")]).unwrap_err();
    assert!(refused.message().contains("write to users"), "{refused}");
    assert!(db.begin().drop_collection(&ns("followerOverflow")).is_err());
    let collated = SMALL.replace("{patterns", "{collation: {locale: \"en\"}, patterns");
    let refused = db.create("others", &collated).unwrap_err();
    assert!(refused.message().contains("default collation"), "{refused}");
}

#[test]
fn a_rename_and_a_drop_take_the_batches_along() {
    let db = users();
    db.insert("users", &[with_followers(1, 30)]).unwrap();
    let mut tx = db.begin();
    tx.rename(&ns("users"), &ns("people"), false).unwrap();
    tx.commit().unwrap();
    db.update("people", "{_id: 1}", "{$push: {followers: 99}}").unwrap();
    assert_eq!(followers(&db.find("people", "{_id: 1}")[0]).len(), 31);
    db.assert_valid("people");
    let error = db.insert("followerOverflow", &[json("{_id: 1}")]).unwrap_err();
    assert!(error.message().contains("people"), "{error}");
    let mut tx: Box<dyn Transaction> = db.begin();
    assert!(tx.drop_collection(&ns("people")).unwrap());
    tx.commit().unwrap();
    assert!(db.begin().collections("shop").unwrap().is_empty());
}

#[test]
fn stored_documents_read_and_written_raw_give_the_same_database() {
    let db = users();
    db.insert("users", &[with_followers(1, 30), with_followers(2, 3)]).unwrap();
    db.update("users", "{_id: 1}", "{$pull: {followers: 15}}").unwrap();
    let copy = users();
    for name in ["users", "followerOverflow"] {
        let docs = db.raw(name, "{}");
        let mut tx = copy.begin_as(Mode::Auto, true);
        common::insert(&mut *tx, name, &docs).unwrap();
        tx.commit().unwrap();
    }
    assert_eq!(copy.find("users", "{}"), db.find("users", "{}"));
    copy.assert_valid("users");
}
