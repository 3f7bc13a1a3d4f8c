//! Small finds and writes on stored documents, for all layouts.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_query::update::Update as UpdateSpec;
use espalier_query::{Context, Filter};
use espalier_store::{Delete, Find, Insert, Inserted, Namespace, Transaction, Update, Want};
use espalier_value::{DocBuf, Error, RawDoc, Result, ValueRef};

use crate::bson::id_of;

/// Appends `{name: {$eq: value}}`, which takes the value as it is, also if it is a pattern or has operators' names.
pub fn equal(out: &mut DocBuf, name: &str, value: ValueRef<'_>) {
    out.append_doc(name, |doc| {
        doc.append("$eq", value);
    });
}

pub fn filter(doc: &DocBuf) -> Result<Arc<Filter>> {
    Ok(Arc::new(Filter::parse(doc.as_raw(), &Scope::default())?))
}

/// The filter for the documents with this value of a field.
pub fn by(name: &str, value: ValueRef<'_>) -> Result<Arc<Filter>> {
    let mut condition = DocBuf::new();
    equal(&mut condition, name, value);
    filter(&condition)
}

/// The filter for the document with this `_id`.
pub fn by_id(id: ValueRef<'_>) -> Result<Arc<Filter>> {
    by("_id", id)
}

pub fn query(filter: Arc<Filter>) -> Find {
    Find::new(filter, Arc::new(Context::default()))
}

pub fn everything() -> Find {
    query(Arc::new(Filter::empty()))
}

pub fn sort(spec: &DocBuf) -> Result<Option<Arc<Sort>>> {
    Ok(Sort::parse(spec.as_raw(), &Scope::default())?.map(Arc::new))
}

/// The stored document with this `_id`.
pub fn get(at: &dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<Option<DocBuf>> {
    first(at, ns, &query(by_id(id)?))
}

/// The first document that a find gives.
pub fn first(at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Option<DocBuf>> {
    let find = Find { limit: Some(1), ..find.clone() };
    let mut cursor = at.find(ns, &find)?;
    Ok(if cursor.advance()? { Some(DocBuf::from_raw(cursor.doc())) } else { None })
}

/// Stores a document in the place of the one with its `_id`.
pub fn replace(tx: &mut dyn Transaction, ns: &Namespace, doc: DocBuf) -> Result<()> {
    let id = by_id(id_of(doc.as_raw()))?;
    write_one(tx, ns, &own(id, UpdateSpec::stored(doc)))
}

/// Stores a document again as it is, so that everybody who writes it at the same time notices.
pub fn touch(tx: &mut dyn Transaction, ns: &Namespace, doc: DocBuf) -> Result<()> {
    let id = by_id(id_of(doc.as_raw()))?;
    write_one(tx, ns, &own(id, UpdateSpec::touched(doc)))
}

/// Stores what a client's update made of the document with this `_id`; the store checks it as any update's result.
pub fn store(tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>, after: DocBuf, by: &Update) -> Result<()> {
    let update = Arc::new(UpdateSpec::stored(after));
    write_one(tx, ns, &Update { update, want: Want::Nothing, ..by.narrowed(by_id(id)?) })
}

/// An update by operators of a pattern's own, which no validator has a say in.
pub fn own_update(filter: Arc<Filter>, spec: &DocBuf) -> Result<Update> {
    let spec = UpdateSpec::parse(ValueRef::Document(spec.as_raw()), &[], &Scope::default())?;
    Ok(own(filter, spec))
}

fn own(filter: Arc<Filter>, spec: UpdateSpec) -> Update {
    let update = Update::new(filter, Arc::new(spec), Arc::new(Context::default()));
    Update { bypass_validation: true, ..update }
}

fn write_one(tx: &mut dyn Transaction, ns: &Namespace, update: &Update) -> Result<()> {
    match tx.update(ns, update)?.matched {
        1 => Ok(()),
        _ => Err(Error::internal(format!("a document of {ns} that was there a moment ago is gone"))),
    }
}

/// Stores new documents that have been checked already.
pub fn insert(tx: &mut dyn Transaction, ns: &Namespace, docs: &[RawDoc<'_>]) -> Result<()> {
    let how =
        Insert { ordered: true, bypass_validation: true, statements: None, context: Arc::new(Context::default()) };
    match tx.insert(ns, docs, &how)?.errors.into_iter().next() {
        None => Ok(()),
        Some((_, error)) => Err(error),
    }
}

/// Inserts a document as a client asks for it; gives the document's own error.
pub fn insert_one(tx: &mut dyn Transaction, ns: &Namespace, doc: RawDoc<'_>, how: &Insert) -> Result<Option<Error>> {
    Ok(tx.insert(ns, &[doc], how)?.errors.into_iter().next().map(|(_, error)| error))
}

/// As [`Transaction::insert`] for each document in turn. `one` inserts it, and gives its own error if it did not.
pub fn insert_each(
    docs: &[RawDoc<'_>],
    how: &Insert,
    mut one: impl FnMut(RawDoc<'_>) -> Result<Option<Error>>,
) -> Result<Inserted> {
    let mut out = Inserted::default();
    for (at, doc) in docs.iter().enumerate() {
        match one(*doc)? {
            None => out.inserted += 1,
            Some(error) => {
                out.errors.push((at, error));
                if how.ordered {
                    break;
                }
            }
        }
    }
    Ok(out)
}

/// The delete of everything in a collection.
pub fn delete_all(context: &Arc<Context>) -> Delete {
    Delete { multi: true, ..Delete::new(Arc::new(Filter::empty()), context.clone()) }
}

/// Deletes the stored documents that a filter lets through, or the first of them.
pub fn delete(tx: &mut dyn Transaction, ns: &Namespace, filter: Arc<Filter>, multi: bool) -> Result<u64> {
    let delete = Delete { multi, ..Delete::new(filter, Arc::new(Context::default())) };
    Ok(tx.delete(ns, &delete)?.deleted)
}

/// Deletes the stored document with this `_id`.
pub fn remove(tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
    delete(tx, ns, by_id(id)?, false).map(drop)
}
