//! Writing logical documents: find them, take turns, write each in a transaction of its own, start over on a conflict.
//! Inside a client's transaction everything goes into that.

use std::sync::Arc;
use std::time::Duration;

use espalier_query::projection::{Kind, Projection};
use espalier_query::update::Description;
use espalier_query::{Context, Filter};
use espalier_store::{
    Begin, Delete, Deleted, EventKind, Find, Happening, Hint, Insert, Inserted, Mode, Namespace, Remembered,
    Transaction, Update, Updated, Want,
};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value, ValueRef, doc};

use crate::layout::{Layout, Written};
use crate::many::next_ids;
use crate::roles::Roles;
use crate::txn::PatternedTxn;

/// Documents that an insert of many commits together.
const INSERT_DOCS: usize = 1_000;
const INSERT_BYTES: usize = 4 << 20;
/// How often a writer looks whether a pattern that is being declared has settled.
const SETTLE_POLL: Duration = Duration::from_millis(1);

/// Somebody else changed what this transaction changes.
pub fn conflicted(error: &Error) -> bool {
    error.code() == Code::WriteConflict
}

impl PatternedTxn {
    /// Does `work` in a transaction of its own until it commits without a conflict; in the client's, once.
    pub(crate) fn atomically<T>(
        &mut self,
        context: &Arc<Context>,
        mut work: impl FnMut(&mut dyn Transaction) -> Result<T>,
    ) -> Result<T> {
        if self.begin.mode == Mode::Transaction {
            self.below.set_silent(true);
            let done = work(&mut *self.below);
            self.below.set_silent(false);
            return done;
        }
        loop {
            context.interrupt.check()?;
            let begin = Begin { mode: Mode::Transaction, want_changes: false, raw: true, context: context.clone() };
            let mut tx = self.shared.below.begin(begin)?;
            tx.set_silent(true);
            match work(&mut *tx) {
                Ok(value) => match tx.commit() {
                    Ok(token) => {
                        self.last = self.last.max(token);
                        return Ok(value);
                    }
                    Err(error) if conflicted(&error) => {}
                    Err(error) => return Err(error),
                },
                Err(error) => {
                    tx.abort();
                    if !conflicted(&error) {
                        return Err(error);
                    }
                }
            }
            std::thread::yield_now();
        }
    }

    /// The newest state outside a transaction; the client's snapshot in one.
    fn now(&self, context: &Arc<Context>) -> Result<Box<dyn Transaction>> {
        if self.begin.mode == Mode::Transaction {
            return Ok(self.below.reader());
        }
        self.shared.below.begin(Begin { mode: Mode::Auto, want_changes: false, raw: true, context: context.clone() })
    }

    pub(crate) fn insert_logical(&mut self, ns: &Namespace, docs: &[RawDoc<'_>], how: &Insert) -> Result<Inserted> {
        let mut out = Inserted::default();
        let mut next = 0;
        while next < docs.len() {
            let mut bytes = 0;
            let fits = |doc: &&RawDoc<'_>| {
                bytes += doc.as_bytes().len();
                bytes <= INSERT_BYTES
            };
            let count = docs[next..].iter().take(INSERT_DOCS).take_while(fits).count().max(1);
            let chunk = &docs[next..next + count];
            let below = Insert { statements: None, ..how.clone() };
            let done = self.atomically(&how.context, |tx| {
                let layout = layout_to_write(tx, ns)?;
                let done = match &layout {
                    Some((layout, false)) => layout.insert(tx, ns, chunk, &below)?,
                    Some((layout, true)) => layout.insert_leaving(tx, ns, chunk, &below)?,
                    None => tx.insert(ns, chunk, &below)?,
                };
                let failed = |at: usize| done.errors.iter().any(|(failed, _)| *failed == at);
                let tried = if how.ordered { done.errors.first().map_or(count, |(at, _)| *at) } else { count };
                for at in (0..tried).filter(|at| !failed(*at)) {
                    announce_insert(tx, ns, layout.as_ref(), chunk[at])?;
                }
                if let Some(statements) = &how.statements {
                    let ids =
                        (0..tried).filter(|at| !failed(*at)).filter_map(|at| statements.ids.get(next + at).copied());
                    let what = Remembered::Inserted(ids.collect());
                    tx.remember(&statements.session, statements.txn_number, &what);
                }
                Ok(done)
            })?;
            out.inserted += done.inserted;
            let stop = how.ordered && !done.errors.is_empty();
            out.errors.extend(done.errors.into_iter().map(|(at, error)| (at + next, error)));
            if stop {
                break;
            }
            next += count;
        }
        Ok(out)
    }

    pub(crate) fn update_logical(&mut self, ns: &Namespace, update: &Update) -> Result<Updated> {
        if update.multi {
            return self.update_many(ns, update);
        }
        loop {
            update.context.interrupt.check()?;
            let (target, exact) = self.target(ns, &update.filter, &update.context, &update.sort, &update.hint)?;
            let Some(id) = target else { return self.no_match(ns, update) };
            if let Some(updated) = self.update_by_id(ns, id.or_null(), update)? {
                return Ok(updated);
            }
            // Named by its `_id`, it is not there; found by a search, somebody else changed it meanwhile.
            if exact {
                return self.no_match(ns, update);
            }
        }
    }

    fn no_match(&mut self, ns: &Namespace, update: &Update) -> Result<Updated> {
        if !update.upsert {
            return Ok(Updated::default());
        }
        if let Some(updated) = self.update_hidden(ns, update)? {
            return Ok(updated);
        }
        match self.upsert(ns, update)? {
            Some(updated) => Ok(updated),
            // Somebody else was faster; it is there now.
            None => self.update_logical(ns, &Update { multi: false, ..update.clone() }),
        }
    }

    /// An upsert that found nothing, on documents that match and are not shown to a find.
    fn update_hidden(&mut self, ns: &Namespace, update: &Update) -> Result<Option<Updated>> {
        let Some(mut cursor) = self.hidden(ns, update)? else { return Ok(None) };
        let mut total = Updated::default();
        while let Some(id) = next_id(&mut *cursor)? {
            update.context.interrupt.check()?;
            let Some(updated) = self.update_by_id(ns, id.or_null(), update)? else { continue };
            if !update.multi {
                return Ok(Some(updated));
            }
            total.matched += 1;
            total.modified += updated.modified;
        }
        Ok((total.matched > 0).then_some(total))
    }

    fn hidden(&self, ns: &Namespace, update: &Update) -> Result<Option<Box<dyn espalier_store::Cursor>>> {
        let at = self.now(&update.context)?;
        let Some((layout, _)) = layout_of(&*at, ns)? else { return Ok(None) };
        let mut find = Find::new(update.filter.clone(), update.context.clone());
        find.sort = update.sort.clone();
        layout.hidden(&*at, ns, &find)
    }

    /// Refuses a write of many documents as a whole.
    fn check_many(&self, ns: &Namespace, filter: &Arc<Filter>, context: &Arc<Context>) -> Result<()> {
        let at = self.now(context)?;
        match layout_of(&*at, ns)? {
            Some((layout, _)) => layout.check_many(&*at, ns, &Find::new(filter.clone(), context.clone())),
            None => Ok(()),
        }
    }

    fn update_many(&mut self, ns: &Namespace, update: &Update) -> Result<Updated> {
        self.check_many(ns, &update.filter, &update.context)?;
        let mut total = Updated::default();
        let mut cursor = self.ids(ns, &update.filter, &update.context, &None, &update.hint, None)?;
        loop {
            let ids = next_ids(&mut *cursor)?;
            if ids.is_empty() {
                break;
            }
            let (done, left) = self.update_together(ns, ids, update)?;
            total.matched += done.matched;
            total.modified += done.modified;
            for id in left {
                update.context.interrupt.check()?;
                if let Some(updated) = self.update_by_id(ns, id.or_null(), update)? {
                    total.matched += 1;
                    total.modified += updated.modified;
                }
            }
        }
        if total.matched > 0 { Ok(total) } else { self.no_match(ns, update) }
    }

    fn update_by_id(&mut self, ns: &Namespace, id: ValueRef<'_>, update: &Update) -> Result<Option<Updated>> {
        let shared = self.shared.clone();
        let _turn = match self.begin.mode {
            Mode::Auto => Some(shared.locks.lock(ns, id, &update.context)?),
            Mode::Transaction => None,
        };
        self.atomically(&update.context, |tx| {
            let layout = layout_to_write(tx, ns)?;
            let before = before_image(tx, ns, layout.as_ref(), id, &update.context)?;
            let written = match layout.clone() {
                Some((layout, false)) => layout.update_one(tx, ns, id, update)?,
                leaving => {
                    if let Some((layout, true)) = leaving {
                        layout.migrate(tx, ns, id, true, &update.context)?;
                    }
                    update_plain(tx, ns, id, update)?
                }
            };
            let Some(written) = written else { return Ok(None) };
            if written.modified {
                let mut event = Happening::new(ns.clone(), EventKind::Replace);
                event.key = Some(key_of(id));
                event.before = before;
                match written.did {
                    Some(Description::Updated(description)) => {
                        event.kind = EventKind::Update;
                        event.description = Some(description);
                    }
                    _ => {
                        let layout = layout.as_ref().map(|(layout, _)| layout);
                        event.document = find_one(tx, layout, ns, id, &update.context)?;
                    }
                }
                tx.announce(event)?;
            }
            let image = written.image.map(|image| project(image, update.projection.as_deref(), &update.context));
            let image = image.transpose()?;
            let updated = Updated { matched: 1, modified: written.modified.into(), upserted_id: None, image };
            if let Some(statement) = &update.statement {
                let what = Remembered::Updated(statement.id, updated.clone());
                tx.remember(&statement.session, statement.txn_number, &what);
            }
            Ok(Some(updated))
        })
    }

    /// `None` if a match has appeared meanwhile.
    fn upsert(&mut self, ns: &Namespace, update: &Update) -> Result<Option<Updated>> {
        let equalities = update.filter.equalities()?;
        let doc = update.update.upsert(&equalities, update.new_id, &update.context)?;
        let id = crate::bson::id_of(doc.as_raw());
        let how = Insert {
            ordered: true,
            bypass_validation: update.bypass_validation,
            statements: None,
            context: update.context.clone(),
        };
        let inserted = self.atomically(&update.context, |tx| {
            let layout = layout_to_write(tx, ns)?;
            let done = match &layout {
                Some((layout, false)) => layout.insert(tx, ns, &[doc.as_raw()], &how)?,
                Some((layout, true)) => layout.insert_leaving(tx, ns, &[doc.as_raw()], &how)?,
                None => tx.insert(ns, &[doc.as_raw()], &how)?,
            };
            if let Some((_, error)) = done.errors.into_iter().next() {
                return Err(error);
            }
            announce_insert(tx, ns, layout.as_ref(), doc.as_raw())?;
            let image = match (update.want, &layout) {
                (Want::After, layout) => {
                    let image = find_one(tx, layout.as_ref().map(|(layout, _)| layout), ns, id, &update.context)?;
                    image.map(|image| project(image, update.projection.as_deref(), &update.context)).transpose()?
                }
                _ => None,
            };
            let updated = Updated { matched: 0, modified: 0, upserted_id: Some(Value::own(id)), image };
            if let Some(statement) = &update.statement {
                let what = Remembered::Updated(statement.id, updated.clone());
                tx.remember(&statement.session, statement.txn_number, &what);
            }
            Ok(updated)
        });
        match inserted {
            Err(error)
                if error.code() == Code::DuplicateKey
                    && self.begin.mode == Mode::Auto
                    && self.is_there(ns, update)? =>
            {
                Ok(None)
            }
            inserted => inserted.map(Some),
        }
    }

    fn is_there(&self, ns: &Namespace, update: &Update) -> Result<bool> {
        let mut cursor = self.ids(ns, &update.filter, &update.context, &None, &None, Some(1))?;
        if next_id(&mut *cursor)?.is_some() {
            return Ok(true);
        }
        match self.hidden(ns, update)? {
            Some(mut hidden) => Ok(next_id(&mut *hidden)?.is_some()),
            None => Ok(false),
        }
    }

    pub(crate) fn delete_logical(&mut self, ns: &Namespace, delete: &Delete) -> Result<Deleted> {
        if delete.multi {
            self.check_many(ns, &delete.filter, &delete.context)?;
            let mut deleted = 0;
            let mut cursor = self.ids(ns, &delete.filter, &delete.context, &None, &delete.hint, None)?;
            loop {
                let ids = next_ids(&mut *cursor)?;
                if ids.is_empty() {
                    break;
                }
                if let Some(done) = self.delete_together(ns, &ids, delete)? {
                    deleted += done;
                    continue;
                }
                for id in ids {
                    delete.context.interrupt.check()?;
                    deleted += u64::from(self.delete_by_id(ns, id.or_null(), delete)?.is_some());
                }
            }
            return Ok(Deleted { deleted, image: None });
        }
        loop {
            delete.context.interrupt.check()?;
            let (target, exact) = self.target(ns, &delete.filter, &delete.context, &delete.sort, &delete.hint)?;
            let Some(id) = target else { return Ok(Deleted::default()) };
            if let Some(deleted) = self.delete_by_id(ns, id.or_null(), delete)? {
                return Ok(deleted);
            }
            if exact {
                return Ok(Deleted::default());
            }
        }
    }

    fn delete_by_id(&mut self, ns: &Namespace, id: ValueRef<'_>, delete: &Delete) -> Result<Option<Deleted>> {
        let shared = self.shared.clone();
        let _turn = match self.begin.mode {
            Mode::Auto => Some(shared.locks.lock(ns, id, &delete.context)?),
            Mode::Transaction => None,
        };
        self.atomically(&delete.context, |tx| {
            let layout = layout_to_write(tx, ns)?;
            let before = before_image(tx, ns, layout.as_ref(), id, &delete.context)?;
            let written = match &layout {
                Some((layout, _)) => layout.delete_one(tx, ns, id, delete)?,
                None => delete_plain(tx, ns, id, delete)?,
            };
            let Some(written) = written else { return Ok(None) };
            let mut event = Happening::new(ns.clone(), EventKind::Delete);
            event.key = Some(key_of(id));
            event.before = before;
            tx.announce(event)?;
            let image = written.image.map(|image| project(image, delete.projection.as_deref(), &delete.context));
            let deleted = Deleted { deleted: 1, image: image.transpose()? };
            if let Some(statement) = &delete.statement {
                let what = Remembered::Deleted(statement.id, deleted.clone());
                tx.remember(&statement.session, statement.txn_number, &what);
            }
            Ok(Some(deleted))
        })
    }

    /// Brings what is stored for one logical document in line with the pattern.
    pub(crate) fn repair_one(&mut self, ns: &Namespace, id: ValueRef<'_>) -> Result<()> {
        let (shared, context) = (self.shared.clone(), self.begin.context.clone());
        let _turn = shared.locks.lock(ns, id, &context)?;
        self.atomically(&context, |tx| match layout_to_write(tx, ns)? {
            Some((layout, _)) => layout.repair(tx, ns, id),
            None => Ok(()),
        })
    }

    /// The `_id` of the document a write is about, and whether the filter names it.
    fn target(
        &self,
        ns: &Namespace,
        filter: &Arc<Filter>,
        context: &Arc<Context>,
        sort: &Option<Arc<espalier_query::sort::Sort>>,
        hint: &Option<Hint>,
    ) -> Result<(Option<Value<'static>>, bool)> {
        // Under a collation a text may equal several `_id`s.
        let equalities = filter.equalities().ok().filter(|_| context.collation.is_none());
        let named = equalities.and_then(|equal| {
            let by_id = equal.iter().find(|(path, _)| path.as_str() == "_id")?;
            Some(Value::own(by_id.1))
        });
        if let Some(id) = named {
            return Ok((Some(id), true));
        }
        let mut cursor = self.ids(ns, filter, context, sort, hint, Some(1))?;
        Ok((next_id(&mut *cursor)?, false))
    }

    /// The `_id`s of the logical documents that match.
    fn ids(
        &self,
        ns: &Namespace,
        filter: &Arc<Filter>,
        context: &Arc<Context>,
        sort: &Option<Arc<espalier_query::sort::Sort>>,
        hint: &Option<Hint>,
        limit: Option<u64>,
    ) -> Result<Box<dyn espalier_store::Cursor>> {
        let at = self.now(context)?;
        let mut find = Find::new(filter.clone(), context.clone());
        find.sort = sort.clone();
        find.hint = hint.clone();
        find.limit = limit;
        let only_id = doc! { "_id": 1 };
        find.projection = Some(Arc::new(Projection::parse(only_id.as_raw(), &Default::default(), Kind::Find)?));
        match layout_of(&*at, ns)? {
            Some((layout, _)) => layout.find(&*at, ns, &find),
            None => at.find(ns, &find),
        }
    }
}

/// The collection's layout, and whether it is being folded back.
fn layout_of(at: &dyn Transaction, ns: &Namespace) -> Result<Option<(Arc<dyn Layout>, bool)>> {
    let Some(roles) = Roles::of(at, ns)? else { return Ok(None) };
    Ok(roles.layout.clone().map(|layout| {
        let leaving = roles.leaving && !layout.writes_while_leaving();
        (layout, leaving)
    }))
}

/// As [`layout_of`], for writing: a conflict while writes that do not know of the pattern may be under way.
pub(crate) fn layout_to_write(at: &dyn Transaction, ns: &Namespace) -> Result<Option<(Arc<dyn Layout>, bool)>> {
    if Roles::of(at, ns)?.is_some_and(|roles| roles.settling) {
        std::thread::sleep(SETTLE_POLL);
        return Err(Error::new(Code::WriteConflict, format!("a pattern is being declared on {ns}; try again")));
    }
    layout_of(at, ns)
}

/// The update of one document where there is no pattern any more.
fn update_plain(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    id: ValueRef<'_>,
    update: &Update,
) -> Result<Option<Written>> {
    let filter = with_id(id, &update.filter, &update.context)?;
    let one = Update {
        filter,
        multi: false,
        upsert: false,
        sort: None,
        hint: None,
        projection: None,
        statement: None,
        ..update.clone()
    };
    let updated = tx.update(ns, &one)?;
    Ok((updated.matched > 0).then_some(Written { modified: updated.modified > 0, image: updated.image, did: None }))
}

pub(crate) fn delete_plain(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    id: ValueRef<'_>,
    delete: &Delete,
) -> Result<Option<Written>> {
    let filter = with_id(id, &delete.filter, &delete.context)?;
    let one =
        Delete { filter, multi: false, sort: None, hint: None, projection: None, statement: None, ..delete.clone() };
    let deleted = tx.delete(ns, &one)?;
    Ok((deleted.deleted > 0).then_some(Written { modified: true, image: deleted.image, did: None }))
}

/// The logical document with this `_id`.
fn find_one(
    at: &dyn Transaction,
    layout: Option<&Arc<dyn Layout>>,
    ns: &Namespace,
    id: ValueRef<'_>,
    context: &Arc<Context>,
) -> Result<Option<DocBuf>> {
    let find = Find::new(equal_id(id)?, context.clone());
    let mut cursor = match layout {
        Some(layout) => layout.find(at, ns, &find)?,
        None => at.find(ns, &find)?,
    };
    Ok(if cursor.advance()? { Some(DocBuf::from_raw(cursor.doc())) } else { None })
}

pub(crate) fn key_of(id: ValueRef<'_>) -> DocBuf {
    let mut key = DocBuf::new();
    key.append("_id", id);
    key
}

/// Tells change streams of an inserted logical document.
fn announce_insert(
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

/// The logical document before a write, if change streams are to have it.
fn before_image(
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

fn next_id(cursor: &mut dyn espalier_store::Cursor) -> Result<Option<Value<'static>>> {
    Ok(if cursor.advance()? { Some(Value::own(crate::bson::id_of(cursor.doc()))) } else { None })
}

fn equal_id(id: ValueRef<'_>) -> Result<Arc<Filter>> {
    let mut filter = DocBuf::new();
    filter.append_doc("_id", |doc| {
        doc.append("$eq", id);
    });
    Ok(Arc::new(Filter::parse(filter.as_raw(), &Default::default())?))
}

/// The filter for one document that must still match.
fn with_id(id: ValueRef<'_>, filter: &Filter, context: &Context) -> Result<Arc<Filter>> {
    if filter.is_empty() {
        return equal_id(id);
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
    Ok(Arc::new(Filter::parse(all.as_raw(), &espalier_query::expression::Scope::of(context))?))
}

fn project(image: DocBuf, projection: Option<&Projection>, context: &Context) -> Result<DocBuf> {
    let Some(projection) = projection else { return Ok(image) };
    let mut out = DocBuf::new();
    projection.apply(image.as_raw(), None, context, &mut out)?;
    Ok(out)
}
