//! Small finds and writes on stored documents.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::{Context, Filter};
use espalier_store::{Delete, Find, Insert, Namespace, Transaction};
use espalier_value::{DocBuf, RawDoc, Result, ValueRef};

/// The filter for the document with this `_id`.
pub fn by_id(id: ValueRef<'_>) -> Result<Arc<Filter>> {
    let mut condition = DocBuf::new();
    condition.append_doc("_id", |doc| {
        doc.append("$eq", id);
    });
    Ok(Arc::new(Filter::parse(condition.as_raw(), &Scope::default())?))
}

pub fn query(filter: Arc<Filter>) -> Find {
    Find::new(filter, Arc::new(Context::default()))
}

pub fn everything() -> Find {
    query(Arc::new(Filter::empty()))
}

/// The stored document with this `_id`.
pub fn get(at: &dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<Option<DocBuf>> {
    let mut find = query(by_id(id)?);
    find.limit = Some(1);
    let mut cursor = at.find(ns, &find)?;
    Ok(if cursor.advance()? { Some(DocBuf::from_raw(cursor.doc())) } else { None })
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
