//! Writing one document of a collection whose documents are stored as they are.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::{Context, Filter};
use espalier_store::{Delete, Namespace, Transaction, Update};
use espalier_value::{DocBuf, Result, ValueRef};

use crate::layout::Written;
use crate::stored::by_id;

/// Updates the document if it is there and the filter lets it through.
pub(crate) fn update_plain(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    id: ValueRef<'_>,
    update: &Update,
) -> Result<Option<Written>> {
    let filter = with_id(id, &update.filter, &update.context)?;
    let updated = tx.update(ns, &update.narrowed(filter))?;
    Ok((updated.matched > 0).then_some(Written { modified: updated.modified > 0, image: updated.image, did: None }))
}

/// Deletes the document if it is there and the filter lets it through.
pub(crate) fn delete_plain(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    id: ValueRef<'_>,
    delete: &Delete,
) -> Result<Option<Written>> {
    let filter = with_id(id, &delete.filter, &delete.context)?;
    let deleted = tx.delete(ns, &delete.narrowed(filter))?;
    Ok((deleted.deleted > 0).then_some(Written { modified: true, image: deleted.image, did: None }))
}

/// The filter for one document that must still match.
fn with_id(id: ValueRef<'_>, filter: &Filter, context: &Context) -> Result<Arc<Filter>> {
    if filter.is_empty() {
        return by_id(id);
    }
    let mut all = DocBuf::new();
    all.append_array("$and", |list| {
        list.push_doc(|doc| {
            doc.append_doc("_id", |doc| {
                doc.append("$eq", id);
            });
        });
        list.push(filter.source());
    });
    Ok(Arc::new(Filter::parse(all.as_raw(), &Scope::of(context))?))
}
