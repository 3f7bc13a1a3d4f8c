//! Small finds and writes on the stored documents.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_query::update::Update as UpdateSpec;
use espalier_query::{Context, Filter};
use espalier_store::{Delete, Find, Insert, Namespace, Transaction, Update, Want};
use espalier_value::{DocBuf, Error, RawDoc, Result, ValueRef, doc};

use super::NUMBER;

/// The filter for the document with this `_id`.
pub fn by_id(id: ValueRef<'_>) -> Result<Arc<Filter>> {
    equal("_id", id)
}

/// The filter for the batches of a main document.
pub fn by_parent(parent: &str, id: ValueRef<'_>) -> Result<Arc<Filter>> {
    equal(parent, id)
}

fn equal(name: &str, id: ValueRef<'_>) -> Result<Arc<Filter>> {
    let mut condition = DocBuf::new();
    condition.append_doc(name, |doc| {
        doc.append("$eq", id);
    });
    Ok(Arc::new(Filter::parse(condition.as_raw(), &Scope::default())?))
}

pub fn query(filter: Arc<Filter>) -> Find {
    Find::new(filter, Arc::new(Context::default()))
}

/// Batches by their number.
pub fn in_order(direction: i32) -> Result<Arc<Sort>> {
    let sort = Sort::parse(doc! { "batchNumber": direction }.as_raw(), &Scope::default())?;
    debug_assert_eq!(NUMBER, "batchNumber");
    sort.map(Arc::new).ok_or_else(|| Error::internal("a sort by one field is a sort"))
}

/// The stored document with this `_id`.
pub fn get(at: &dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<Option<DocBuf>> {
    let mut find = query(by_id(id)?);
    find.limit = Some(1);
    let mut cursor = at.find(ns, &find)?;
    Ok(if cursor.advance()? { Some(DocBuf::from_raw(cursor.doc())) } else { None })
}

/// Stores a document in the place of the one with its `_id`.
pub fn replace(tx: &mut dyn Transaction, ns: &Namespace, doc: DocBuf) -> Result<()> {
    let update = Update {
        filter: by_id(crate::bson::id_of(doc.as_raw()))?,
        update: Arc::new(UpdateSpec::stored(doc)),
        multi: false,
        upsert: false,
        sort: None,
        hint: None,
        want: Want::Nothing,
        projection: None,
        new_id: [0; 12],
        bypass_validation: true,
        statement: None,
        context: Arc::new(Context::default()),
    };
    match tx.update(ns, &update)?.matched {
        1 => Ok(()),
        _ => Err(Error::internal(format!("a document of {ns} that was there a moment ago is gone"))),
    }
}

/// Stores a new document that has been checked already.
pub fn insert(tx: &mut dyn Transaction, ns: &Namespace, doc: RawDoc<'_>) -> Result<()> {
    let how =
        Insert { ordered: true, bypass_validation: true, statements: None, context: Arc::new(Context::default()) };
    match tx.insert(ns, &[doc], &how)?.errors.into_iter().next() {
        None => Ok(()),
        Some((_, error)) => Err(error),
    }
}

pub fn delete(tx: &mut dyn Transaction, ns: &Namespace, filter: Arc<Filter>, multi: bool) -> Result<u64> {
    let delete = Delete {
        filter,
        multi,
        sort: None,
        hint: None,
        want_image: false,
        projection: None,
        statement: None,
        context: Arc::new(Context::default()),
    };
    Ok(tx.delete(ns, &delete)?.deleted)
}
