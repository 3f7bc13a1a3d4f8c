//! Indexes: every one is on both collections, and a unique one holds across both.

use espalier_store::{IndexSpec, Namespace, Transaction};
use espalier_value::{Error, Result};

use super::Archive;
use super::write::as_of;
use crate::bson::without;
use crate::stored::everything;

impl Archive {
    pub(super) fn create_on_both(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        specs: &[IndexSpec],
    ) -> Result<(usize, usize)> {
        let before: Vec<String> = tx.indexes(ns)?.into_iter().map(|index| index.spec.name).collect();
        let archive = self.archive(ns);
        let there: Vec<String> = tx.indexes(&archive)?.into_iter().map(|index| index.spec.name).collect();
        let mut mirrored = Vec::with_capacity(specs.len());
        for spec in specs {
            mirrored.push(in_archive(spec)?);
        }
        tx.create_indexes(&archive, &mirrored)?;
        // From here on every write to the collection looks into the archive's, so what is found now is all there is.
        let made = tx.create_indexes(ns, specs);
        let made = match made {
            Ok(made) if specs.iter().any(|spec| spec.unique) => match self.shared_key(tx, ns)? {
                Some(error) => Err(error),
                None => Ok(made),
            },
            made => made,
        };
        if made.is_err() {
            for spec in specs {
                for (place, old) in [(ns, &before), (&archive, &there)] {
                    if !old.contains(&spec.name) {
                        // What was not made cannot be taken back.
                        let _ = tx.drop_index(place, &spec.name);
                    }
                }
            }
        }
        made
    }

    /// MongoDB's 11000 if a document of the one collection has a unique key of one in the other.
    pub(super) fn shared_key(&self, at: &dyn Transaction, ns: &Namespace) -> Result<Option<Error>> {
        let archive = self.archive(ns);
        let fewer = at.coll_stats(&archive)?.count < at.coll_stats(ns)?.count;
        let (walk, ask) = if fewer { (&archive, ns) } else { (ns, &archive) };
        let mut cursor = at.find(walk, &everything())?;
        while cursor.advance()? {
            if let Some(error) = at.taken(ask, cursor.doc())? {
                return Ok(Some(as_of(error, &archive, ns)));
            }
        }
        Ok(None)
    }

    pub(super) fn drop_on_both(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        tx.drop_index(ns, name)?;
        let archive = self.archive(ns);
        let there = tx.indexes(&archive)?.iter().any(|index| index.spec.name == name);
        if there { tx.drop_index(&archive, name) } else { Ok(()) }
    }

    pub(super) fn set_on_both(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        name: &str,
        spec: &IndexSpec,
    ) -> Result<()> {
        let archive = self.archive(ns);
        if tx.indexes(&archive)?.iter().any(|index| index.spec.name == name) {
            tx.set_index(&archive, name, &in_archive(spec)?)?;
        }
        tx.set_index(ns, name, spec)
    }
}

/// The archive's index for one on the collection. Expiry is the logical collection's alone: it deletes what its reads see.
pub fn in_archive(spec: &IndexSpec) -> Result<IndexSpec> {
    match spec.expire_after_seconds {
        None => Ok(spec.clone()),
        Some(_) => IndexSpec::parse(without(spec.listed.as_raw(), &["expireAfterSeconds"]).as_raw()),
    }
}
