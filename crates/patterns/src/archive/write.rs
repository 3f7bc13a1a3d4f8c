//! Writing: to active documents as ever, with an eye on keys that are in the archive; an archived document comes back
//! first, in the same transaction.

use espalier_query::update::{Apply, Kind};
use espalier_store::{Delete, Insert, Inserted, Namespace, Transaction, Update, Want};
use espalier_value::{Code, Error, RawDoc, Result, ValueRef, compare};

use super::{Archive, Write};
use crate::layout::Written;
use crate::stored::{by_id, delete, get, insert, insert_each, insert_one, store};
use crate::write::delete_plain;

impl Archive {
    pub(super) fn insert_all(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        docs: &[RawDoc<'_>],
        how: &Insert,
    ) -> Result<Inserted> {
        insert_each(docs, how, |doc| {
            let wrong = match self.stamps().find(|name| doc.get(name).is_some()) {
                Some(name) => Some(self.not_yours(name)),
                None => self.taken_in_archive(tx, ns, doc)?,
            };
            match wrong {
                Some(error) => Ok(Some(error)),
                None => insert_one(tx, ns, doc, how),
            }
        })
    }

    pub(super) fn update_active_or_archived(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Written>> {
        self.refuse_stamps(update)?;
        let (there, archived) = match get(tx, ns, id)? {
            Some(active) => (active, false),
            None => match get(tx, &self.archive(ns), id)? {
                Some(archived) => (archived, true),
                None => return Ok(None),
            },
        };
        let Some(found) = update.filter.matches_at(there.as_raw(), &update.context)? else { return Ok(None) };
        if archived {
            self.refuse_if_declared(ns, id)?;
        }
        let thawed = archived.then(|| self.without_stamps(there.as_raw()));
        let plain = thawed.as_ref().unwrap_or(&there).as_raw();
        let apply = Apply { context: &update.context, position: found.position, inserting: false };
        let Some((after, did)) = update.update.apply_described(plain, &apply)? else {
            // Nothing to do, so an archived document may stay where it is.
            let image = (update.want != Want::Nothing).then_some(there);
            return Ok(Some(Written { modified: false, image, did: None }));
        };
        self.check_stamps_kept(plain, after.as_raw())?;
        if archived {
            self.thaw(tx, ns, id, plain)?;
        }
        store(tx, ns, id, after.clone(), update)?;
        if self.has_unique_keys(tx, ns)?
            && let Some(error) = self.taken_in_archive(tx, ns, after.as_raw())?
        {
            return Err(error);
        }
        let image = match update.want {
            Want::Nothing => None,
            Want::Before => Some(there),
            Want::After => Some(after),
        };
        Ok(Some(Written { modified: true, image, did: Some(did) }))
    }

    /// A replacement or a pipeline may leave a stamp's field as it is, where there is one.
    fn check_stamps_kept(&self, before: RawDoc<'_>, after: RawDoc<'_>) -> Result<()> {
        for name in self.stamps() {
            if let Some(new) = after.get(name)
                && !before.get(name).is_some_and(|old| compare(old, new).is_eq())
            {
                return Err(self.not_yours(name));
            }
        }
        Ok(())
    }

    pub(super) fn delete_active_or_archived(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        how: &Delete,
    ) -> Result<Option<Written>> {
        if let Some(written) = delete_plain(tx, ns, id, how)? {
            return Ok(Some(written));
        }
        let archive = self.archive(ns);
        let Some(archived) = get(tx, &archive, id)? else { return Ok(None) };
        if !how.filter.matches(archived.as_raw(), &how.context)? {
            return Ok(None);
        }
        self.refuse_if_declared(ns, id)?;
        delete(tx, &archive, by_id(id)?, false)?;
        Ok(Some(Written { modified: true, image: how.want_image.then_some(archived), did: None }))
    }

    /// Brings a document back to the active ones.
    pub(super) fn thaw(
        &self,
        tx: &mut dyn Transaction,
        ns: &Namespace,
        id: ValueRef<'_>,
        plain: RawDoc<'_>,
    ) -> Result<()> {
        delete(tx, &self.archive(ns), by_id(id)?, false)?;
        insert(tx, ns, &[plain])
    }

    fn refuse_if_declared(&self, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        match self.write {
            Write::Thaw => Ok(()),
            Write::Refuse => Err(self.refused(ns, &format!("the document with _id {id} of {ns} is"))),
        }
    }

    pub(super) fn refused(&self, ns: &Namespace, what: &str) -> Error {
        Error::new(
            Code::CommandNotSupported,
            format!(
                "{what} archived in '{}', and the pattern 'archive' on {} is declared with write: \"refuse\"; declare it \
                 with write: \"thaw\" to let writes bring documents back",
                self.into,
                ns.collection()
            ),
        )
    }

    /// Refuses operators that name a stamp.
    fn refuse_stamps(&self, update: &Update) -> Result<()> {
        if update.update.kind() != Kind::Operators {
            return Ok(());
        }
        let touched = update.update.touched_paths().unwrap_or_default();
        match self.stamps().find(|name| touched.iter().any(|path| path.first() == *name)) {
            Some(name) => Err(self.not_yours(name)),
            None => Ok(()),
        }
    }

    /// MongoDB's 11000 if an archived document has this one's `_id` or one of its unique keys. Nobody puts a key into the
    /// archive that was not in the collection before, so a commit that passed this and the collection's own check is
    /// right whatever others do meanwhile.
    fn taken_in_archive(&self, at: &dyn Transaction, ns: &Namespace, doc: RawDoc<'_>) -> Result<Option<Error>> {
        let archive = self.archive(ns);
        let taken = at.taken(&archive, doc)?;
        Ok(taken.map(|error| as_of(error, &archive, ns)))
    }

    fn has_unique_keys(&self, at: &dyn Transaction, ns: &Namespace) -> Result<bool> {
        Ok(at.indexes(ns)?.iter().any(|index| index.spec.unique && !index.spec.is_id()))
    }
}

/// The error as the logical collection tells it.
pub fn as_of(error: Error, archive: &Namespace, ns: &Namespace) -> Error {
    let there = format!("collection: {archive} ");
    let told = Error::new(error.code(), error.message().replacen(&there, &format!("collection: {ns} "), 1));
    match error.info() {
        Some(info) => told.with_info(info.clone()),
        None => told,
    }
}
