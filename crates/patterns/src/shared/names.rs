//! The names of the logical collections that have documents, one after the other: the index on the discriminator tells the next
//! without reading what lies between, and nothing is kept of those that were told.

use std::sync::Arc;

use espalier_query::{Context, Stream};
use espalier_store::{Cursor, Find, Hint, Namespace, Transaction};
use espalier_value::{DocBuf, RawDoc, Result, ValueRef};

use super::Shared;
use super::indexes::TENANT_INDEX;
use crate::stored::everything;

impl Shared {
    /// `{name, collection, pattern}` for each.
    pub(super) fn list_names(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        context: &Arc<Context>,
    ) -> Result<Box<dyn Stream>> {
        let mut find = Find::new(everything().filter, context.clone()).distinct_at(&self.discriminator);
        if at.indexes(ns)?.iter().any(|index| index.spec.name == TENANT_INDEX && !index.building) {
            find.hint = Some(Hint::Name(TENANT_INDEX.to_string()));
        }
        let tenants = at.find(ns, &find)?;
        let (shared, ns) = (self.clone(), ns.clone());
        Ok(Box::new(Names { tenants, at: at.reader(), shared, ns, last: None, current: DocBuf::new() }))
    }
}

struct Names {
    tenants: Box<dyn Cursor>,
    at: Box<dyn Transaction>,
    shared: Shared,
    ns: Namespace,
    /// The tenant that was told last; they come in order.
    last: Option<Box<str>>,
    current: DocBuf,
}

impl Stream for Names {
    fn advance(&mut self) -> Result<bool> {
        while self.tenants.advance()? {
            let named = self.tenants.doc().get(&self.shared.discriminator).and_then(ValueRef::as_str);
            let Some(tenant) = named.filter(|tenant| self.last.as_deref() != Some(tenant)) else { continue };
            self.last = Some(tenant.into());
            let name = self.shared.name_of(tenant);
            if Namespace::checked(self.ns.db(), &name).is_err() || !self.stands_for_part(&name)? {
                continue;
            }
            self.current.clear();
            self.current.append("name", &*name).append("collection", &*self.shared.into).append("pattern", "shared");
            return Ok(true);
        }
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }
}

impl Names {
    /// A collection on its way in or out is listed as a collection; and of two templates that fit, the first has the name.
    fn stands_for_part(&self, name: &str) -> Result<bool> {
        let layer = self.at.layer(&Namespace::new(self.ns.db(), name))?;
        Ok(layer.is_some_and(|layer| layer.answers_for(name) == Some(&*self.shared.into)))
    }
}
