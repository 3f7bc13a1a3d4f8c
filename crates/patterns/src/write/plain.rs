//! Writing one document of a collection whose documents are stored as they are.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::update::Apply;
use espalier_query::{Context, Filter};
use espalier_store::{Delete, Namespace, Transaction, Update, Want};
use espalier_value::{DocBuf, Result, ValueRef};

use crate::bson::id_of;
use crate::layout::Written;
use crate::stored::{by_id, get, store};

/// Updates the document if it is there and the filter lets it through.
pub(crate) fn update_plain(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    id: ValueRef<'_>,
    update: &Update,
) -> Result<Option<Written>> {
    let filter = match exactly(tx, ns, id, &update.filter, &update.context)? {
        Exactly::Simple => with_id(id, &update.filter, &update.context)?,
        Exactly::No => return Ok(None),
        Exactly::At(there, Some(position)) => return update_at(tx, ns, there, position, update).map(Some),
        Exactly::At(_, None) => by_id(id)?,
    };
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
    let filter = match exactly(tx, ns, id, &delete.filter, &delete.context)? {
        Exactly::Simple => with_id(id, &delete.filter, &delete.context)?,
        Exactly::No => return Ok(None),
        Exactly::At(..) => by_id(id)?,
    };
    let deleted = tx.delete(ns, &delete.narrowed(filter))?;
    Ok((deleted.deleted > 0).then_some(Written { modified: true, image: deleted.image, did: None }))
}

/// Whether the document with just this `_id` matches.
enum Exactly {
    /// The store can be asked.
    Simple,
    No,
    /// It does, with the position that `$` stands for.
    At(DocBuf, Option<usize>),
}

/// Under a collation a text equals others, and several documents may have an `_id` that equals this one: the store, asked for
/// one that has it and matches, might take another.
fn exactly(
    at: &dyn Transaction,
    ns: &Namespace,
    id: ValueRef<'_>,
    filter: &Filter,
    context: &Context,
) -> Result<Exactly> {
    if context.collation.is_none() || filter.is_empty() {
        return Ok(Exactly::Simple);
    }
    let Some(there) = get(at, ns, id)? else { return Ok(Exactly::No) };
    Ok(match filter.matches_at(there.as_raw(), context)? {
        Some(found) => Exactly::At(there, found.position),
        None => Exactly::No,
    })
}

/// An update that the filter's position is part of.
fn update_at(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    before: DocBuf,
    position: usize,
    update: &Update,
) -> Result<Written> {
    let apply = Apply { context: &update.context, position: Some(position), inserting: false };
    let Some((after, did)) = update.update.apply_described(before.as_raw(), &apply)? else {
        let image = (update.want != Want::Nothing).then_some(before);
        return Ok(Written { modified: false, image, did: None });
    };
    store(tx, ns, id_of(before.as_raw()), after.clone(), update)?;
    let image = match update.want {
        Want::Nothing => None,
        Want::Before => Some(before),
        Want::After => Some(after),
    };
    Ok(Written { modified: true, image, did: Some(did) })
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
