//! From logical documents to stored ones and back.

use espalier_value::{DocBuf, RawDoc, Result, ValueRef};

use super::{Shared, Tenant};
use crate::bson::id_of;

impl Shared {
    /// Whose a stored document is, by its `_id`, and the `_id` it has there.
    pub(super) fn parts<'d>(&self, stored: RawDoc<'d>) -> Option<(&'d str, ValueRef<'d>)> {
        let id = stored.get("_id")?.as_doc()?;
        let mut elems = id.iter();
        let (tenant, inner, None) = (elems.next()?, elems.next()?, elems.next()) else { return None };
        let shaped = tenant.name() == &*self.discriminator && inner.name() == "_id";
        Some((tenant.value().as_str().filter(|_| shaped)?, inner.value()))
    }
}

impl Tenant {
    pub(super) fn stored_id(&self, id: ValueRef<'_>) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append(&self.shared.discriminator, &*self.tenant).append("_id", id);
        doc
    }

    /// What is stored for a logical document; an error if it says that it is another's.
    pub(super) fn stored(&self, logical: RawDoc<'_>) -> Result<DocBuf> {
        let named = logical.get(&self.shared.discriminator);
        if named.is_some_and(|value| value.as_str() != Some(&self.tenant)) {
            return Err(self.not_yours());
        }
        let mut out = DocBuf::with_capacity(logical.as_bytes().len() + 64);
        out.append("_id", &self.stored_id(id_of(logical)));
        if named.is_none() {
            out.append(&self.shared.discriminator, &*self.tenant);
        }
        logical.iter().filter(|elem| elem.name() != "_id").for_each(|elem| {
            out.append_elem(elem);
        });
        Ok(out)
    }

    /// The logical document of a stored one, which may have been cut down to some of its fields.
    pub(super) fn logical_of(&self, stored: RawDoc<'_>) -> DocBuf {
        let mut out = DocBuf::with_capacity(stored.as_bytes().len());
        for elem in stored {
            match (elem.name(), elem.value()) {
                ("_id", ValueRef::Document(id)) => out.append("_id", id_of(id)),
                _ => out.append_elem(elem),
            };
        }
        out
    }
}
