//! The indexes of a logical collection are the physical ones that begin with the discriminator.

use espalier_store::{IndexInfo, IndexSpec, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, doc};

use super::rewrite::{path, paths};
use super::{Shared, Tenant};
use crate::bson::without;

/// The index that every physical collection has: the documents of a tenant by their `_id`.
pub const TENANT_INDEX: &str = "shared_tenant";

/// A key on logical documents as one on stored documents.
pub fn prefixed(discriminator: &str, key: RawDoc<'_>) -> DocBuf {
    let mut out = DocBuf::new();
    if key.first().is_none_or(|first| first.name() != discriminator) {
        out.append(discriminator, 1);
    }
    paths(key).as_raw().iter().for_each(|elem| {
        out.append_elem(elem);
    });
    out
}

fn with_key(spec: &IndexSpec, key: &DocBuf) -> Result<IndexSpec> {
    let mut listed = DocBuf::new();
    for elem in spec.listed.as_raw() {
        match elem.name() {
            "key" => listed.append("key", key),
            _ => listed.append_elem(elem),
        };
    }
    IndexSpec::parse(listed.as_raw())
}

impl Shared {
    pub(super) fn own_index(&self) -> Result<IndexSpec> {
        let mut key = DocBuf::new();
        key.append(&self.discriminator, 1).append("_id._id", 1);
        IndexSpec::parse(doc! { "key": &key, "name": TENANT_INDEX }.as_raw())
    }
}

impl Tenant {
    pub(super) fn create_prefixed(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        specs: &[IndexSpec],
    ) -> Result<(usize, usize)> {
        let (physical, specs) = (self.physical(ns), self.prefixed_specs(specs)?);
        let there = tx.indexes(&physical)?;
        let has = |spec: &IndexSpec| {
            let same = |other: &IndexSpec| other.name == spec.name && other.key().as_bytes() == spec.key().as_bytes();
            there.iter().any(|index| same(&index.spec))
        };
        if !specs.iter().all(has) {
            self.shared.refuse_while_parting(tx, &physical, "an index cannot be made")?;
        }
        tx.create_indexes(&physical, &specs)
    }

    /// The indexes on stored documents for those on logical ones.
    pub(super) fn prefixed_specs(&self, specs: &[IndexSpec]) -> Result<Vec<IndexSpec>> {
        let mut all = Vec::with_capacity(specs.len());
        for spec in specs.iter().filter(|spec| !spec.is_id()) {
            let what = if spec.is_wildcard() {
                "a wildcard index"
            } else if spec.expire_after_seconds.is_some() {
                "a TTL index"
            } else if spec.partial.as_ref().is_some_and(|filter| reads_id(&filter.dependencies())) {
                "a partial index by _id"
            } else if spec.sparse && spec.parts.len() > 1 {
                "a sparse index on several fields"
            } else if spec.key().iter().skip(1).any(|elem| elem.name() == &*self.shared.discriminator) {
                "an index with the discriminator after other fields"
            } else {
                all.push(with_key(&unsparse(spec)?, &prefixed(&self.shared.discriminator, spec.key()))?);
                continue;
            };
            return Err(Error::new(
                Code::CannotCreateIndex,
                self.refused(&format!("{what}, '{}',", spec.name)).message(),
            ));
        }
        Ok(all)
    }

    /// As the logical collection lists them.
    pub(super) fn list(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Vec<IndexInfo>> {
        let mut out = Vec::new();
        for index in at.indexes(&self.physical(ns))? {
            if index.spec.is_id() {
                out.push(index);
                continue;
            }
            let first = index.spec.key().first();
            let ours = first.is_some_and(|first| first.name() == &*self.shared.discriminator);
            if !ours || index.spec.name == TENANT_INDEX || index.spec.key().count() == 1 {
                continue;
            }
            let mut key = DocBuf::new();
            for elem in index.spec.key().iter().skip(1) {
                let name = elem.name().strip_prefix("_id.").unwrap_or(elem.name());
                key.append(name, elem.value());
            }
            out.push(IndexInfo { spec: with_key(&index.spec, &key)?, ..index });
        }
        Ok(out)
    }
}

/// With the discriminator in the key no document is left out any more, so a partial index does what a sparse one did.
fn unsparse(spec: &IndexSpec) -> Result<IndexSpec> {
    let Some(part) = spec.parts.first().filter(|_| spec.sparse) else { return Ok(spec.clone()) };
    let mut listed = without(spec.listed.as_raw(), &["sparse"]);
    listed.append_doc("partialFilterExpression", |doc| {
        doc.append_doc(&path(part.path.as_str()), |doc| {
            doc.append("$exists", true);
        });
    });
    IndexSpec::parse(listed.as_raw())
}

pub fn reads_id(deps: &espalier_query::expression::Deps) -> bool {
    deps.paths().is_none_or(|mut paths| paths.any(|path| path == "_id" || path.starts_with("_id.")))
}
