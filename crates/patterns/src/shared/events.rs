//! Change streams: a write to a logical collection is told to those who watch the physical one, and the other way round.
//! What is told under the name that the client wrote to is told where all layouts' writes are.

use espalier_query::update::Description;
use espalier_store::{EventKind, Happening, Namespace, Transaction};
use espalier_value::{DocBuf, RawDoc, Result, ValueRef};

use super::{Shared, Tenant};
use crate::bson::id_of;
use crate::roles::Roles;
use crate::write::key_of;

fn event(ns: &Namespace, kind: EventKind, id: ValueRef<'_>) -> Happening {
    let mut event = Happening::new(ns.clone(), kind);
    event.key = Some(key_of(id));
    event
}

fn has_images(tx: &dyn Transaction, ns: &Namespace) -> Result<bool> {
    Ok(Roles::of(tx, ns)?.is_some_and(|roles| roles.pre_images))
}

pub fn inserted(tx: &mut dyn Transaction, ns: &Namespace, doc: RawDoc<'_>) -> Result<()> {
    let mut event = event(ns, EventKind::Insert, id_of(doc));
    event.document = Some(DocBuf::from_raw(doc));
    tx.announce(event)
}

pub fn updated(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    before: RawDoc<'_>,
    after: RawDoc<'_>,
    did: &Description,
) -> Result<()> {
    let mut event = event(ns, EventKind::Replace, id_of(before));
    let images = has_images(tx, ns)?;
    event.before = images.then(|| DocBuf::from_raw(before));
    if let Description::Updated(description) = did {
        event.kind = EventKind::Update;
        event.description = Some(description.clone());
    }
    if images || event.kind == EventKind::Replace {
        event.document = Some(DocBuf::from_raw(after));
    }
    tx.announce(event)
}

pub fn deleted(tx: &mut dyn Transaction, ns: &Namespace, before: RawDoc<'_>) -> Result<()> {
    let mut event = event(ns, EventKind::Delete, id_of(before));
    event.before = has_images(tx, ns)?.then(|| DocBuf::from_raw(before));
    tx.announce(event)
}

impl Shared {
    /// The logical collection of a stored document, and its name.
    pub(super) fn whose(&self, ns: &Namespace, stored: RawDoc<'_>) -> Option<(Tenant, Namespace)> {
        let (tenant, _) = self.parts(stored)?;
        let tenant = self.logical(&self.name_of(tenant))?;
        let name = tenant.logical_name(ns.db());
        Some((tenant, name))
    }

    pub(super) fn tell_inserted(&self, tx: &mut dyn Transaction, ns: &Namespace, stored: RawDoc<'_>) -> Result<()> {
        let Some((tenant, name)) = self.whose(ns, stored) else { return Ok(()) };
        inserted(tx, &name, tenant.logical_of(stored).as_raw())
    }

    pub(super) fn tell_updated(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        before: RawDoc<'_>,
        after: RawDoc<'_>,
        did: &Description,
    ) -> Result<()> {
        let Some((tenant, name)) = self.whose(ns, before) else { return Ok(()) };
        let (before, after) = (tenant.logical_of(before), tenant.logical_of(after));
        updated(tx, &name, before.as_raw(), after.as_raw(), did)
    }

    pub(super) fn tell_deleted(&self, tx: &mut dyn Transaction, ns: &Namespace, stored: RawDoc<'_>) -> Result<()> {
        let Some((tenant, name)) = self.whose(ns, stored) else { return Ok(()) };
        deleted(tx, &name, tenant.logical_of(stored).as_raw())
    }
}
