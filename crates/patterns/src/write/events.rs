//! What change streams are told of writes to logical documents.

use std::sync::Arc;

use espalier_query::Context;
use espalier_query::projection::Projection;
use espalier_query::update::Description;
use espalier_store::{EventKind, Happening, Namespace, Transaction};
use espalier_value::{DocBuf, RawDoc, Result, ValueRef};

use super::find_one;
use crate::layout::{Layout, Written};
use crate::roles::Roles;

pub(crate) fn key_of(id: ValueRef<'_>) -> DocBuf {
    let mut key = DocBuf::new();
    key.append("_id", id);
    key
}

pub(super) fn inserted(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    layout: Option<&(Arc<dyn Layout>, bool)>,
    doc: RawDoc<'_>,
) -> Result<()> {
    let mut event = Happening::new(ns.clone(), EventKind::Insert);
    event.key = Some(key_of(crate::bson::id_of(doc)));
    event.document = Some(match layout {
        Some((layout, false)) => layout.inserted(doc),
        _ => DocBuf::from_raw(doc),
    });
    tx.announce(event)
}

pub(super) fn updated(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    layout: &Arc<dyn Layout>,
    id: ValueRef<'_>,
    (before, after): (Option<DocBuf>, Option<DocBuf>),
    written: &Written,
    context: &Arc<Context>,
) -> Result<()> {
    let mut event = Happening::new(ns.clone(), EventKind::Replace);
    event.key = Some(key_of(id));
    event.before = before;
    match &written.did {
        Some(Description::Updated(description)) => {
            event.kind = EventKind::Update;
            event.description = Some(description.clone());
            event.document = after;
        }
        _ => event.document = find_one(tx, Some(layout), ns, id, context)?,
    }
    tx.announce(event)
}

pub(super) fn deleted(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    id: ValueRef<'_>,
    before: Option<DocBuf>,
) -> Result<()> {
    let mut event = Happening::new(ns.clone(), EventKind::Delete);
    event.key = Some(key_of(id));
    event.before = before;
    tx.announce(event)
}

/// The logical document before a write, if change streams are to have it.
pub(crate) fn before_image(
    tx: &dyn Transaction,
    ns: &Namespace,
    layout: Option<&(Arc<dyn Layout>, bool)>,
    id: ValueRef<'_>,
    context: &Arc<Context>,
) -> Result<Option<DocBuf>> {
    if !Roles::of(tx, ns)?.is_some_and(|roles| roles.pre_images) {
        return Ok(None);
    }
    find_one(tx, layout.map(|(layout, _)| layout), ns, id, context)
}

pub(super) fn project(image: DocBuf, projection: Option<&Projection>, context: &Context) -> Result<DocBuf> {
    let Some(projection) = projection else { return Ok(image) };
    let mut out = DocBuf::new();
    projection.apply(image.as_raw(), None, context, &mut out)?;
    Ok(out)
}
