//! The archive pattern as a layout.

use espalier_query::{Context, Filter};
use espalier_store::{
    CollStats, CollectionOptions, Cursor, Delete, Find, IndexSpec, Insert, Inserted, Namespace, Transaction, Update,
    Verbosity,
};
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawDoc, Result, Value, ValueRef, doc};

use super::indexes::in_archive;
use super::{Archive, Read, Write};
use crate::bson::id_of;
use crate::declare::owned_by;
use crate::layout::{Checked, Layout, Move, Periodic, Written};
use crate::stored::query;

impl Layout for Archive {
    fn prepare(&self, tx: &mut dyn Transaction, ns: &Namespace) -> Result<()> {
        self.refuse_used_stamps(tx, ns)?;
        let archive = self.archive(ns);
        let options: CollectionOptions = owned_by(tx, &archive, ns, "archive")?;
        tx.create(&archive, &options)?;
        let mut specs = Vec::new();
        for index in tx.indexes(ns)?.iter().filter(|index| !index.spec.is_id()) {
            specs.push(in_archive(&index.spec)?);
        }
        tx.create_indexes(&archive, &specs).map(drop)
    }

    fn beside(&self, ns: &Namespace) -> Vec<Namespace> {
        vec![self.archive(ns)]
    }

    fn find(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        self.find_seen(at, ns, find)
    }

    fn find_all(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        let union = Archive { read: super::Read::Union, ..self.clone() };
        union.find_seen(at, ns, find)
    }

    fn hidden(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Option<Box<dyn Cursor>>> {
        if self.sees_archive(find) {
            return Ok(None);
        }
        at.find(&self.archive(ns), find).map(Some)
    }

    fn check_many(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<()> {
        if self.write == Write::Thaw || !self.sees_archive(find) {
            return Ok(());
        }
        let one = Find { limit: Some(1), ..find.clone() };
        match at.count(&self.archive(ns), &one)? {
            0 => Ok(()),
            _ => Err(self.refused(ns, "documents that match are")),
        }
    }

    fn count(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
        self.count_seen(at, ns, find)
    }

    fn distinct(&self, at: &dyn Transaction, ns: &Namespace, path: &str, find: &Find) -> Result<Vec<Value<'static>>> {
        self.distinct_seen(at, ns, path, find)
    }

    fn explain(&self, at: &dyn Transaction, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf> {
        self.explain_seen(at, ns, find, verbosity)
    }

    fn insert(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
        insert: &Insert,
    ) -> Result<Inserted> {
        self.insert_all(tx, ns, docs, insert)
    }

    fn update_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        self.update_active_or_archived(tx, ns, id, update)
    }

    fn delete_one(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        delete: &Delete,
    ) -> Result<Option<Written>> {
        self.delete_active_or_archived(tx, ns, id, delete)
    }

    fn create_indexes(&self, tx: &mut dyn Transaction, ns: &Namespace, specs: &[IndexSpec]) -> Result<(usize, usize)> {
        self.create_on_both(tx, ns, specs)
    }

    fn drop_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str) -> Result<()> {
        self.drop_on_both(tx, ns, name)
    }

    fn set_index(&self, tx: &mut dyn Transaction, ns: &Namespace, name: &str, spec: &IndexSpec) -> Result<()> {
        self.set_on_both(tx, ns, name, spec)
    }

    fn coll_stats(&self, at: &dyn Transaction, ns: &Namespace) -> Result<CollStats> {
        let mut stats = at.coll_stats(ns)?;
        if self.read == Read::Union {
            let archived = at.coll_stats(&self.archive(ns))?;
            stats.count += archived.count;
            stats.size += archived.size;
            stats.storage_size += archived.storage_size;
        }
        Ok(stats)
    }

    fn health(&self, at: &dyn Transaction, ns: &Namespace) -> Result<DocBuf> {
        self.health_of(at, ns)
    }

    fn check(&self, at: &dyn Transaction, ns: &Namespace, context: &Context) -> Result<Checked> {
        self.check_all(at, ns, context)
    }

    fn repair(&self, tx: &mut dyn Transaction, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        self.repair_one(tx, ns, id)
    }

    /// A declaration moves nothing, the first run does; without it everything comes back.
    fn unmigrated(&self, out: bool) -> DocBuf {
        if out {
            DocBuf::new()
        } else {
            doc! { "_id": &doc! { "$in": &ArrayBuf::new() } }
        }
    }

    fn unmigrated_in(&self, ns: &Namespace, out: bool) -> Namespace {
        if out { self.archive(ns) } else { ns.clone() }
    }

    fn migrate(&self, tx: &mut dyn Transaction, ns: &Namespace, moved: Move<'_>, _: &Context) -> Result<bool> {
        if moved.out { self.move_back(tx, ns, moved.id) } else { Ok(false) }
    }

    /// The active documents are as clients wrote them, but their keys are still to be looked for in the archive.
    fn writes_while_leaving(&self) -> bool {
        true
    }

    fn periodic(&self) -> Option<&dyn Periodic> {
        Some(self)
    }
}

impl Archive {
    /// A document that has a stamp's field already could not be archived and brought back as it was.
    fn refuse_used_stamps(&self, at: &dyn Transaction, ns: &Namespace) -> Result<()> {
        for name in self.stamps() {
            let mut there = DocBuf::new();
            there.append_doc(name, |doc| {
                doc.append("$exists", true);
            });
            let mut find = query(std::sync::Arc::new(Filter::parse(there.as_raw(), &Default::default())?));
            find.limit = Some(1);
            let mut cursor = at.find(ns, &find)?;
            if cursor.advance()? {
                return Err(Error::new(
                    Code::InvalidOptions,
                    format!(
                        "patterns: archive.stamp.{name}: the document with _id {} of {ns} has this field already; \
                         stamp another field, or remove it from the documents",
                        id_of(cursor.doc())
                    ),
                ));
            }
        }
        Ok(())
    }
}
