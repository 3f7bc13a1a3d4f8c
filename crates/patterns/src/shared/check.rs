//! Checking the invariant over what is stored, and mending it.

use espalier_query::Context;
use espalier_store::{Find, Namespace, Transaction};
use espalier_value::{DocBuf, RawDoc, Result, Value, ValueRef, doc};

use super::Shared;
use crate::bson::id_of;
use crate::layout::Checked;
use crate::stored::{by_id, everything, get, own_update};

/// Violations that are told one by one.
const TOLD_MAX: usize = 1_000;

impl Shared {
    pub(super) fn check_all(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked> {
        self.check_some(at, ns, &everything(), context)
    }

    pub(super) fn check_some(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        find: &Find,
        context: &Context,
    ) -> Result<Checked> {
        let mut checked = Checked::default();
        let mut cursor = at.find(ns, find)?;
        while cursor.advance()? && checked.violations.len() < TOLD_MAX {
            context.interrupt.check()?;
            checked.documents += 1;
            if let Some(wrong) = self.wrong(cursor.doc()) {
                let id = id_of(cursor.doc());
                checked.violations.push((format!("{ns}, _id {id}: {wrong}"), Value::own(id)));
            }
        }
        Ok(checked)
    }

    /// What is wrong with a stored document, in words.
    pub(super) fn wrong(&self, stored: RawDoc<'_>) -> Option<String> {
        let field = &self.discriminator;
        match self.parts(stored) {
            None => Some(format!("the _id should be {{{field}: <text>, _id: <the _id in '{}'>}}", self.name)),
            Some((tenant, _)) if stored.get(field).and_then(ValueRef::as_str) == Some(tenant) => None,
            Some((tenant, _)) => Some(format!("'{field}' should be \"{tenant}\", as in the _id")),
        }
    }

    /// The `_id` says whose a document is. One that does not say it is nobody's, and stays a violation.
    pub(super) fn repair_one(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        let Some(stored) = get(tx, ns, id)? else { return Ok(()) };
        let Some((tenant, _)) = self.parts(stored.as_raw()) else { return Ok(()) };
        let mut fields = DocBuf::new();
        fields.append(&self.discriminator, tenant);
        let set = doc! { "$set": &fields };
        tx.update(ns, &own_update(by_id(id)?, &set)?).map(drop)
    }

    /// Numbers for `collStats`.
    pub(super) fn health_of(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        let tenants = at.distinct(ns, &self.discriminator, &everything())?.len();
        Ok(doc! { "discriminator": &*self.discriminator, "name": &*self.name, "tenants": tenants as i64 })
    }
}
