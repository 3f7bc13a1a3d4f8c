//! Collections and their options.

use std::sync::Arc;

use espalier_query::{Context, Filter};
use espalier_store::{Begin, CollectionOptions, Find, Mode, Store};
use espalier_value::{Code, Collation, Error, doc};

use crate::support::*;

pub fn collections_come_and_go(store: &dyn Store) {
    let mut tx = auto(store);
    tx.create(&ns("c"), &CollectionOptions::default()).unwrap();
    tx.commit().unwrap();
    let at = auto(store);
    let listed: Vec<String> = at.collections("contract").unwrap().into_iter().map(|c| c.name).collect();
    assert_eq!(listed, ["c"]);
    assert!(at.databases().unwrap().iter().any(|db| db.name == "contract"));
    let uuid = at.collection(&ns("c")).unwrap().unwrap().uuid;
    assert!(auto(store).drop_collection(&ns("c")).unwrap());
    assert!(!auto(store).drop_collection(&ns("c")).unwrap());
    assert!(auto(store).collection(&ns("c")).unwrap().is_none());
    // A write makes it again, as another collection.
    put(store, "c", &[numbered(1, 0)]);
    assert_ne!(auto(store).collection(&ns("c")).unwrap().unwrap().uuid, uuid);
}

pub fn a_rename_takes_documents_and_indexes_along(store: &dyn Store) {
    put(store, "from", &[numbered(1, 4)]);
    put(store, "to", &[numbered(2, 0)]);
    auto(store).create_indexes(&ns("from"), &[unique("n")]).unwrap();
    let refused = auto(store).rename(&ns("from"), &ns("to"), false).unwrap_err();
    assert_eq!(refused.code(), Code::NamespaceExists);
    auto(store).rename(&ns("from"), &ns("to"), true).unwrap();
    let at = auto(store);
    assert!(at.collection(&ns("from")).unwrap().is_none());
    assert_eq!(all(&*at, "to"), [numbered(1, 4)]);
    assert_eq!(at.indexes(&ns("to")).unwrap().len(), 2);
    drop(at);
    assert_eq!(insert(&mut *auto(store), "to", &[numbered(3, 4)]).unwrap().errors.len(), 1);
}

pub fn others_follow_a_rename_in_its_commit(store: &dyn Store) {
    for name in ["from", "reader", "other"] {
        put(store, name, &[numbered(1, 4)]);
    }
    let listed = doc! { "validationLevel": "off" };
    let follow = |name: &str, options: &CollectionOptions| {
        Ok((name == "reader").then(|| CollectionOptions { listed: listed.clone(), ..options.clone() }))
    };
    let raw = || store.begin(Begin { raw: true, ..how(Mode::Auto) }).unwrap();
    // A transaction that wrote to one of them before does not know of it.
    let mut late = transaction(store);
    assert!(insert(&mut *late, "reader", &[numbered(2, 5)]).unwrap().errors.is_empty());
    let before = auto(store);
    // What the others cannot follow does not happen.
    let refused = raw().rename_with(&ns("from"), &ns("to"), false, &|_, _| Err(Error::internal("no"))).unwrap_err();
    assert_eq!(refused.message(), "no");
    assert!(auto(store).collection(&ns("from")).unwrap().is_some());
    raw().rename_with(&ns("from"), &ns("to"), false, &follow).unwrap();
    assert_eq!(late.commit().unwrap_err().code(), Code::WriteConflict);
    let at = auto(store);
    assert!(at.collection(&ns("from")).unwrap().is_none());
    assert_eq!(all(&*at, "to"), [numbered(1, 4)]);
    assert_eq!(at.collection(&ns("reader")).unwrap().unwrap().options.listed, listed);
    assert!(at.collection(&ns("other")).unwrap().unwrap().options.listed.is_empty());
    assert!(before.collection(&ns("reader")).unwrap().unwrap().options.listed.is_empty());
    assert!(before.collection(&ns("from")).unwrap().is_some());
}

pub fn options_are_replaced_as_a_whole(store: &dyn Store) {
    put(store, "c", &[numbered(1, 0)]);
    let listed = doc! { "validationLevel": "off" };
    let options = CollectionOptions { listed: listed.clone(), ..CollectionOptions::default() };
    let mut tx = auto(store);
    tx.set_options(&ns("c"), &options).unwrap();
    tx.commit().unwrap();
    assert_eq!(auto(store).collection(&ns("c")).unwrap().unwrap().options.listed, listed);
    auto(store).set_options(&ns("c"), &CollectionOptions::default()).unwrap();
    assert!(auto(store).collection(&ns("c")).unwrap().unwrap().options.listed.is_empty());
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 0)]);
}

pub fn options_of_several_are_replaced_in_one_commit(store: &dyn Store) {
    for name in ["whole", "part"] {
        put(store, name, &[numbered(1, 4)]);
    }
    auto(store).create_indexes(&ns("whole"), &[unique("n")]).unwrap();
    let before = auto(store);
    let uuid = before.collection(&ns("whole")).unwrap().unwrap().uuid;
    let listed = doc! { "validationLevel": "off" };
    let options = CollectionOptions { listed: listed.clone(), ..CollectionOptions::default() };
    let all = [(ns("whole"), CollectionOptions::default()), (ns("part"), options)];
    // A transaction that wrote to it before has written to what is not there any more.
    let mut late = transaction(store);
    assert!(insert(&mut *late, "whole", &[numbered(2, 5)]).unwrap().errors.is_empty());
    let mut tx = auto(store);
    tx.set_options_together(&all, &ns("whole")).unwrap();
    assert!(crate::support::all(&*tx, "whole").is_empty());
    tx.commit().unwrap();
    assert_eq!(late.commit().unwrap_err().code(), Code::WriteConflict);
    assert_eq!(crate::support::all(&*before, "whole"), [numbered(1, 4)]);
    let at = auto(store);
    assert_eq!(at.collection(&ns("part")).unwrap().unwrap().options.listed, listed);
    assert_eq!(crate::support::all(&*at, "part"), [numbered(1, 4)]);
    assert_eq!(at.collection(&ns("whole")).unwrap().unwrap().uuid, uuid);
    drop(at);
    put(store, "whole", &[numbered(1, 4)]);
    assert_eq!(insert(&mut *auto(store), "whole", &[numbered(3, 4)]).unwrap().errors.len(), 1);
    assert!(auto(store).set_options_together(&all, &ns("nowhere")).is_err());
    assert_eq!(crate::support::all(&*auto(store), "whole"), [numbered(1, 4)]);
}

pub fn a_default_collation_is_the_one_that_was_parsed_with(store: &dyn Store) {
    let collation = Collation::parse(doc! { "locale": "en", "strength": 2 }.as_raw(), "").unwrap();
    let options = CollectionOptions { collation: collation.clone(), ..CollectionOptions::default() };
    auto(store).create(&ns("c"), &options).unwrap();
    put(store, "c", &[numbered(1, 0)]);
    let with = |collation, of: Option<&str>| {
        let mut context = Context::new(0, 0);
        (context.collation, context.collation_of) = (collation, of.map(Into::into));
        Find::new(Arc::new(Filter::empty()), Arc::new(context))
    };
    let at = auto(store);
    let read = |find: Find| at.find(&ns("c"), &find).map(|mut cursor| cursor.advance().unwrap());
    // Asked for, or the default of this collection or another: as it is.
    assert!(read(with(None, None)).unwrap());
    assert!(read(with(collation, Some("contract.c"))).unwrap());
    assert!(read(with(None, Some("contract.other"))).unwrap());
    // The default of what had the name before.
    assert_eq!(read(with(None, Some("contract.c"))).unwrap_err().code(), Code::QueryPlanKilled);
    let mut update = update_of(1, &doc! { "$set": &doc! { "n": 7 } });
    update.context = with(None, Some("contract.c")).context;
    assert_eq!(auto(store).update(&ns("c"), &update).unwrap_err().code(), Code::QueryPlanKilled);
    assert_eq!(all(&*auto(store), "c"), [numbered(1, 0)]);
}

pub fn a_missing_namespace_reads_as_empty(store: &dyn Store) {
    let at = auto(store);
    assert!(all(&*at, "nowhere").is_empty());
    assert_eq!(at.count(&ns("nowhere"), &everything()).unwrap(), 0);
    assert!(at.distinct(&ns("nowhere"), "n", &everything()).unwrap().is_empty());
    assert!(at.layer(&ns("nowhere")).unwrap().is_none());
    assert!(at.view(&ns("nowhere")).unwrap().is_none());
    drop(at);
    assert_eq!(increment(&mut *auto(store), "nowhere", 1).unwrap().matched, 0);
    assert_eq!(auto(store).delete(&ns("nowhere"), &delete_of(1)).unwrap().deleted, 0);
}
