//! Writing logical documents: find them, take turns, write each in a transaction of its own, start over on a conflict.
//! Inside a client's transaction everything goes into that.

mod at_once;
mod combine;
mod combine_updates;
mod delete;
mod document;
mod events;
mod insert;
mod own;
mod plain;
mod queue;
mod together;
mod update;
mod worked;

use std::sync::Arc;
use std::time::Duration;

use espalier_query::projection::{Kind, Projection};
use espalier_query::sort::Sort;
use espalier_query::{Context, Filter};
use espalier_store::{Begin, Cursor, Find, Hint, Mode, Namespace, Transaction};
use espalier_value::{Code, Error, Result, Value, ValueRef, doc};

use crate::derive::worker;
use crate::layout::Layout;
use crate::locks::Lock;
use crate::roles::Roles;
use crate::txn::PatternedTxn;

pub(crate) use combine::Combiner;
pub(crate) use combine_updates::UpdateCombiner;
pub(crate) use document::Write;
pub(crate) use events::{before_image, key_of};
pub(crate) use plain::{delete_plain, update_plain};
pub(crate) use worked::worked;

/// How often a writer looks whether a pattern that is being declared has settled.
const SETTLE_POLL: Duration = Duration::from_millis(1);

/// Somebody else changed what this transaction changes.
pub fn conflicted(error: &Error) -> bool {
    error.code() == Code::WriteConflict
}

impl PatternedTxn {
    /// Does `work` in a transaction of its own until it commits without a conflict; in the client's, once. `turns` are
    /// documents that it is known to write beside the client's.
    pub(crate) fn atomically<T>(
        &mut self,
        ns: &Namespace,
        context: &Arc<Context>,
        turns: Vec<Turn>,
        mut work: impl FnMut(&mut Write<'_>) -> Result<T>,
    ) -> Result<T> {
        if self.begin.mode == Mode::Transaction {
            self.below.set_silent(true);
            let mut write = Write::new(&mut *self.below, context.clone());
            let done = work(&mut write);
            let marked = write.marked;
            self.below.set_silent(false);
            if marked {
                self.marked.insert(ns.db().into());
            }
            return done;
        }
        let shared = self.shared.clone();
        let mut held = take_turns(&shared.locks, turns, context)?;
        for attempt in 0.. {
            context.interrupt.check()?;
            let begin = Begin { mode: Mode::Transaction, want_changes: false, raw: true, context: context.clone() };
            let mut tx = shared.below.begin(begin)?;
            tx.set_silent(true);
            let mut write = Write::new(&mut *tx, context.clone());
            write.attempt = attempt;
            let done = work(&mut write);
            let (touched, marked) = (std::mem::take(&mut write.touched), write.marked);
            match done {
                Ok(value) => match tx.commit() {
                    Ok(token) => {
                        self.last = self.last.max(token);
                        if marked {
                            worker::wake(&shared, ns.db())?;
                        }
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
            if !touched.is_empty() {
                drop(held);
                held = take_turns(&shared.locks, touched, context)?;
            }
        }
        Err(Error::internal("nobody starts over that often"))
    }

    /// The newest state outside a transaction; the client's snapshot in one.
    fn now(&self, context: &Arc<Context>) -> Result<Box<dyn Transaction>> {
        if self.begin.mode == Mode::Transaction {
            return Ok(self.below.reader());
        }
        self.shared.below.begin(Begin { mode: Mode::Auto, want_changes: false, raw: true, context: context.clone() })
    }

    /// The `_id` of the document a write is about, and whether the filter names it.
    fn target(
        &self,
        ns: &Namespace,
        filter: &Arc<Filter>,
        context: &Arc<Context>,
        sort: &Option<Arc<Sort>>,
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
        sort: &Option<Arc<Sort>>,
        hint: &Option<Hint>,
        limit: Option<u64>,
    ) -> Result<Box<dyn Cursor>> {
        let at = self.now(context)?;
        let mut find = Find::new(filter.clone(), context.clone());
        find.sort = sort.clone();
        find.hint = hint.clone();
        find.limit = limit;
        let only_id = doc! { "_id": 1 };
        find.projection = Some(Arc::new(Projection::parse(only_id.as_raw(), &Default::default(), Kind::Find)?));
        match layout_of(&*at, ns)? {
            Some((layout, _)) => layout.find_to_write(&*at, ns, &find),
            None => at.find(ns, &find),
        }
    }
}

/// A document that several writers may want to write to, each for its own reasons.
pub type Turn = (Namespace, Value<'static>);

/// How long one waits for another's turn to end. They are a courtesy, and may be waited for crosswise.
const TURN_MAX: Duration = Duration::from_millis(200);

/// Takes turns at all of these, in an order that is the same for all.
fn take_turns<'l>(locks: &'l crate::locks::Locks, mut turns: Vec<Turn>, context: &Context) -> Result<Vec<Lock<'l>>> {
    turns.sort_by_cached_key(|(ns, id)| (ns.to_string(), espalier_value::key::of(id.or_null())));
    turns.dedup_by(|a, b| a.0 == b.0 && espalier_value::compare(a.1.or_null(), b.1.or_null()).is_eq());
    let mut held = Vec::new();
    for (ns, id) in turns {
        held.extend(locks.lock_within(&turn_of(&ns), id.or_null(), context, TURN_MAX)?);
    }
    Ok(held)
}

/// Turns at what patterns write are others than those that clients take at what they name: who has one of these may wait
/// for one of those, and never the other way round.
fn turn_of(ns: &Namespace) -> Namespace {
    Namespace::new(ns.db(), &format!("{}$turn", ns.collection()))
}

/// The collection's layout, and whether it is being folded back.
fn layout_of(at: &dyn Transaction, ns: &Namespace) -> Result<Option<(Arc<dyn Layout>, bool)>> {
    Ok(Roles::of(at, ns)?.and_then(|roles| roles.layout_to_write()))
}

/// As [`layout_of`], for writing: a conflict while writes that do not know of the pattern may be under way.
pub(crate) fn layout_to_write(at: &dyn Transaction, ns: &Namespace) -> Result<Option<(Arc<dyn Layout>, bool)>> {
    Ok(roles_to_write(at, ns)?.and_then(|roles| roles.layout_to_write()))
}

fn roles_to_write(at: &dyn Transaction, ns: &Namespace) -> Result<Option<Arc<Roles>>> {
    let roles = Roles::of(at, ns)?;
    if roles.as_ref().is_some_and(|roles| roles.settling) {
        std::thread::sleep(SETTLE_POLL);
        return Err(Error::new(Code::WriteConflict, format!("a pattern is being declared on {ns}; try again")));
    }
    Ok(roles)
}

fn next_id(cursor: &mut dyn Cursor) -> Result<Option<Value<'static>>> {
    Ok(if cursor.advance()? { Some(Value::own(crate::bson::id_of(cursor.doc()))) } else { None })
}

/// The logical document with this `_id`.
pub(crate) fn find_one(
    at: &dyn Transaction,
    layout: Option<&Arc<dyn Layout>>,
    ns: &Namespace,
    id: ValueRef<'_>,
    context: &Arc<Context>,
) -> Result<Option<espalier_value::DocBuf>> {
    let find = Find::new(crate::stored::by_id(id)?, context.clone());
    let mut cursor = match layout {
        Some(layout) => layout.find_all(at, ns, &find)?,
        None => at.find(ns, &find)?,
    };
    Ok(if cursor.advance()? { Some(espalier_value::DocBuf::from_raw(cursor.doc())) } else { None })
}
