//! Small commands on any store.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::update::Update as UpdateSpec;
use espalier_query::{Context, Filter};
use espalier_store::{
    Begin, CollectionOptions, Delete, Find, IndexSpec, Insert, Inserted, Layer, Mode, Namespace, Store, Transaction,
    Update, Updated,
};
use espalier_value::{DocBuf, RawDoc, Result, ValueRef, doc};

pub fn ns(name: &str) -> Namespace {
    Namespace::new("contract", name)
}

pub fn context() -> Arc<Context> {
    Arc::new(Context::new(0, 1))
}

pub fn how(mode: Mode) -> Begin {
    Begin { mode, want_changes: false, raw: false, context: context() }
}

pub fn auto(store: &dyn Store) -> Box<dyn Transaction> {
    store.begin(how(Mode::Auto)).unwrap()
}

pub fn transaction(store: &dyn Store) -> Box<dyn Transaction> {
    store.begin(how(Mode::Transaction)).unwrap()
}

pub fn filter(doc: &DocBuf) -> Arc<Filter> {
    Arc::new(Filter::parse(doc.as_raw(), &Scope::default()).unwrap())
}

pub fn everything() -> Find {
    Find::new(Arc::new(Filter::empty()), context())
}

pub fn insert(tx: &mut dyn Transaction, name: &str, docs: &[DocBuf]) -> Result<Inserted> {
    let docs: Vec<RawDoc<'_>> = docs.iter().map(DocBuf::as_raw).collect();
    let how = Insert { ordered: true, bypass_validation: false, statements: None, context: context() };
    tx.insert(&ns(name), &docs, &how)
}

/// Inserts outside a transaction.
pub fn put(store: &dyn Store, name: &str, docs: &[DocBuf]) {
    let mut tx = auto(store);
    let done = insert(&mut *tx, name, docs).unwrap();
    assert!(done.errors.is_empty(), "{:?}", done.errors);
    tx.commit().unwrap();
}

pub fn update_of(id: i32, change: &DocBuf) -> Update {
    let spec = Arc::new(UpdateSpec::parse(ValueRef::Document(change.as_raw()), &[], &Scope::default()).unwrap());
    Update { new_id: [7; 12], ..Update::new(filter(&doc! { "_id": id }), spec, context()) }
}

pub fn increment(tx: &mut dyn Transaction, name: &str, id: i32) -> Result<Updated> {
    tx.update(&ns(name), &update_of(id, &doc! { "$inc": &doc! { "n": 1 } }))
}

pub fn delete_of(id: i32) -> Delete {
    Delete::new(filter(&doc! { "_id": id }), context())
}

/// All documents of a collection, in the order of their numeric `_id`s.
pub fn all(at: &dyn Transaction, name: &str) -> Vec<DocBuf> {
    let mut cursor = at.find(&ns(name), &everything()).unwrap();
    let mut docs = Vec::new();
    while cursor.advance().unwrap() {
        docs.push(DocBuf::from_raw(cursor.doc()));
    }
    docs.sort_by_key(|doc| int(doc.as_raw(), "_id"));
    docs
}

pub fn int(doc: RawDoc<'_>, name: &str) -> i64 {
    match doc.get(name) {
        Some(ValueRef::Int32(n)) => n.into(),
        Some(ValueRef::Int64(n)) => n,
        other => panic!("{name}: {other:?}"),
    }
}

/// The field `n` of each document.
pub fn numbers(at: &dyn Transaction, name: &str) -> Vec<i64> {
    all(at, name).iter().map(|doc| int(doc.as_raw(), "n")).collect()
}

pub fn numbered(id: i32, n: i32) -> DocBuf {
    doc! { "_id": id, "n": n }
}

pub fn unique(field: &str) -> IndexSpec {
    let (name, mut key) = (format!("{field}_1"), DocBuf::new());
    key.append(field, 1);
    IndexSpec::parse(doc! { "key": &key, "name": &*name, "unique": true }.as_raw()).unwrap()
}

/// Options with something that a layer above the store keeps.
pub fn layered(mark: i32) -> CollectionOptions {
    let mut listed = DocBuf::new();
    listed.append_doc("patternOwner", |owner| {
        owner.append("collection", "somebody").append("pattern", "contract").append("mark", mark);
    });
    CollectionOptions { layer: Layer::of(listed.as_raw()), listed, ..CollectionOptions::default() }
}
