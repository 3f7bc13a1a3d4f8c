//! Writes of single documents that all lead to one other document, done together: readings of one bucket, reviews of one
//! product. One transaction holds what all who wait want; the document that they share is written once in it.
//!
//! The writes are done in the order of their coming, and each has its own answer, its own record for a retry and its own
//! event. If they cannot be done together they are done one by one, so that the error of one is nobody else's.

use std::sync::Arc;

use espalier_query::Context;
use espalier_store::{CommitToken, Delete, Deleted, Insert, Inserted, Mode, Namespace, Remembered, Update, Updated};
use espalier_value::{DocBuf, Error, RawDoc, Result, Value, ValueRef, key};

use super::document::{By, Write};
use super::events::project;
use super::queue::{Came, Queues};
use super::{Turn, find_one};
use crate::roles::Roles;
use crate::txn::PatternedTxn;

/// Most writes that are done together.
const TOGETHER: usize = 64;

/// Those who wait, by the document that their writes lead to.
pub type Combiner = Queues<Waiting, (Answer, CommitToken)>;

/// A write of one document by a client.
#[derive(Clone, Copy)]
pub enum One<'w> {
    Insert(RawDoc<'w>, &'w Insert),
    Update(ValueRef<'w>, &'w Update),
    Delete(ValueRef<'w>, &'w Delete),
}

/// The same while it waits for somebody else.
pub enum Waiting {
    Insert(DocBuf, Insert),
    Update(Value<'static>, Update),
    Delete(Value<'static>, Delete),
}

/// What came of it; `None` if there is no such document, or the filter does not let it through.
pub enum Answer {
    Inserted(Inserted),
    Updated(Option<Updated>),
    Deleted(Option<Deleted>),
}

impl One<'_> {
    fn context(&self) -> &Arc<Context> {
        match self {
            One::Insert(_, how) => &how.context,
            One::Update(_, update) => &update.context,
            One::Delete(_, delete) => &delete.context,
        }
    }

    fn own(&self) -> Waiting {
        match *self {
            One::Insert(doc, how) => Waiting::Insert(DocBuf::from_raw(doc), how.clone()),
            One::Update(id, update) => Waiting::Update(Value::own(id), update.clone()),
            One::Delete(id, delete) => Waiting::Delete(Value::own(id), delete.clone()),
        }
    }
}

impl Waiting {
    fn lend(&self) -> One<'_> {
        match self {
            Waiting::Insert(doc, how) => One::Insert(doc.as_raw(), how),
            Waiting::Update(id, update) => One::Update(id.or_null(), update),
            Waiting::Delete(id, delete) => One::Delete(id.or_null(), delete),
        }
    }
}

impl PatternedTxn {
    /// Inserts one document, together with those of others that lead to the same; `None` if there is nothing to share.
    pub(super) fn insert_combined(
        &mut self,
        ns: &Namespace,
        doc: RawDoc<'_>,
        how: &Insert,
    ) -> Result<Option<Inserted>> {
        if self.begin.mode == Mode::Transaction {
            return Ok(None);
        }
        let at = self.now(&how.context)?;
        let Some(roles) = Roles::of(&*at, ns)? else { return Ok(None) };
        let stored = roles.layout.as_ref().and_then(|layout| layout.turn(ns, doc));
        let derived = roles.leads_to(&*at, ns, doc, |_| true)?;
        let Some(place) = stored.as_ref().or(only(&derived)).map(|turn| place_of(ns, turn)) else { return Ok(None) };
        let turns = stored.into_iter().chain(derived).collect();
        match self.combined(ns, place, turns, One::Insert(doc, how))? {
            Answer::Inserted(inserted) => Ok(Some(inserted)),
            _ => Err(Error::internal("an insert was answered as something else")),
        }
    }

    /// Updates the document, whose turn the client has, together with what others write that leads to the same.
    pub(super) fn update_following(
        &mut self,
        ns: &Namespace,
        id: ValueRef<'_>,
        update: &Update,
    ) -> Result<Option<Option<Updated>>> {
        let touched = update.update.touched_paths();
        let touches = |name: &str| touched.as_ref().is_none_or(|paths| paths.iter().any(|path| path.first() == name));
        let Some(turn) = self.followed_by(ns, id, &update.context, touches)? else { return Ok(None) };
        match self.combined(ns, place_of(ns, &turn), vec![turn], One::Update(id, update))? {
            Answer::Updated(updated) => Ok(Some(updated)),
            _ => Err(Error::internal("an update was answered as something else")),
        }
    }

    /// The same for a delete.
    pub(super) fn delete_following(
        &mut self,
        ns: &Namespace,
        id: ValueRef<'_>,
        delete: &Delete,
    ) -> Result<Option<Option<Deleted>>> {
        let Some(turn) = self.followed_by(ns, id, &delete.context, |_| true)? else { return Ok(None) };
        match self.combined(ns, place_of(ns, &turn), vec![turn], One::Delete(id, delete))? {
            Answer::Deleted(deleted) => Ok(Some(deleted)),
            _ => Err(Error::internal("a delete was answered as something else")),
        }
    }

    /// The one document that derivations will write to because of a write to this one.
    fn followed_by(
        &self,
        ns: &Namespace,
        id: ValueRef<'_>,
        context: &Arc<Context>,
        touches: impl Fn(&str) -> bool,
    ) -> Result<Option<Turn>> {
        if self.begin.mode == Mode::Transaction {
            return Ok(None);
        }
        let at = self.now(context)?;
        let Some(roles) = Roles::of(&*at, ns)? else { return Ok(None) };
        // What the collection itself derives may come, by way of others, from what is written in the same transaction.
        if roles.watchers.is_empty() || !roles.derived.is_empty() || !roles.is_read(&*at, ns, &touches)? {
            return Ok(None);
        }
        let layout = roles.layout_to_write();
        let Some(doc) = find_one(&*at, layout.as_ref().map(|(layout, _)| layout), ns, id, context)? else {
            return Ok(None);
        };
        let mut turns = roles.leads_to(&*at, ns, doc.as_raw(), touches)?;
        Ok(if only(&turns).is_some() { turns.pop() } else { None })
    }

    /// Does the write, with those of others that lead to the same place.
    fn combined(&mut self, ns: &Namespace, place: Vec<u8>, turns: Vec<Turn>, own: One<'_>) -> Result<Answer> {
        let shared = self.shared.clone();
        let mut lead = match shared.combiner.enter(place, own.context(), || own.own())? {
            Came::Leads(lead) => lead,
            Came::Done((answer, token)) => {
                self.last = self.last.max(token);
                return Ok(answer);
            }
        };
        let together = self.atomically(ns, own.context(), turns.clone(), |write| {
            // As late as can be, so that there are many.
            lead.take(TOGETHER - 1);
            let all: Vec<One<'_>> = std::iter::once(own).chain(lead.others().map(Waiting::lend)).collect();
            write.together(ns, &all)
        });
        let token = self.last;
        match together {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                let answer = answers.next().ok_or_else(|| Error::internal("a write without an answer"));
                lead.answer(answers.map(|answer| Ok((answer, token))));
                answer
            }
            Err(error) if lead.others().next().is_none() => Err(error),
            Err(_) => match own.context().interrupt.check() {
                // That was this client's alone.
                Err(interrupted) => {
                    lead.give_back();
                    Err(interrupted)
                }
                // It may be the error of one of them.
                Ok(()) => {
                    let answer = self.one_by_itself(ns, &turns, own);
                    let others: Vec<Result<(Answer, CommitToken)>> = lead
                        .others()
                        .map(|other| Ok((self.one_by_itself(ns, &turns, other.lend())?, self.last)))
                        .collect();
                    lead.answer(others.into_iter());
                    answer
                }
            },
        }
    }

    fn one_by_itself(&mut self, ns: &Namespace, turns: &[Turn], one: One<'_>) -> Result<Answer> {
        let mut answers =
            self.atomically(ns, one.context(), turns.to_vec(), |write| write.together(ns, std::slice::from_ref(&one)))?;
        answers.pop().ok_or_else(|| Error::internal("a write without an answer"))
    }
}

impl Write<'_> {
    /// Does all of the writes, and lets derivations follow them at once. After an error the transaction is of no use.
    fn together(&mut self, ns: &Namespace, all: &[One<'_>]) -> Result<Vec<Answer>> {
        self.hold_back();
        let mut answers = Vec::with_capacity(all.len());
        while let Some(next) = all.get(answers.len()) {
            match *next {
                One::Insert(_, how) => self.inserts(ns, how, &all[answers.len()..], &mut answers)?,
                One::Update(id, update) => {
                    let updated = self.update_told(ns, id, update)?;
                    answers.push(Answer::Updated(updated));
                }
                One::Delete(id, delete) => {
                    let deleted = self.delete_told(ns, id, delete)?;
                    answers.push(Answer::Deleted(deleted));
                }
            }
        }
        self.follow_held_back(ns)?;
        Ok(answers)
    }

    /// Inserts the first of the writes, and those behind it that are inserts checked like it.
    fn inserts(&mut self, ns: &Namespace, first: &Insert, all: &[One<'_>], answers: &mut Vec<Answer>) -> Result<()> {
        let alike = all.iter().map_while(|one| match one {
            One::Insert(doc, how) if how.bypass_validation == first.bypass_validation => Some((*doc, *how)),
            _ => None,
        });
        let (docs, hows): (Vec<RawDoc<'_>>, Vec<&Insert>) = alike.unzip();
        let below = Insert { ordered: false, statements: None, ..first.clone() };
        let mut done = self.insert(ns, &docs, &below)?;
        for (at, how) in hows.into_iter().enumerate() {
            if let Some(failed) = done.errors.iter().position(|(failed, _)| *failed == at) {
                let (_, error) = done.errors.swap_remove(failed);
                answers.push(Answer::Inserted(Inserted { inserted: 0, errors: vec![(0, error)] }));
                continue;
            }
            if let Some(statements) = &how.statements {
                let what = Remembered::Inserted(statements.ids.iter().take(1).copied().collect());
                self.tx.remember(&statements.session, statements.txn_number, &what);
            }
            answers.push(Answer::Inserted(Inserted { inserted: 1, ..Inserted::default() }));
        }
        Ok(())
    }

    /// Updates a document as a client asked, and remembers the answer.
    pub(super) fn update_told(&mut self, ns: &Namespace, id: ValueRef<'_>, update: &Update) -> Result<Option<Updated>> {
        let Some(written) = self.update(ns, id, update, By::Client)? else { return Ok(None) };
        let image = written.image.map(|image| project(image, update.projection.as_deref(), &update.context));
        let image = image.transpose()?;
        let updated = Updated { matched: 1, modified: written.modified.into(), upserted_id: None, image };
        if let Some(statement) = &update.statement {
            let what = Remembered::Updated(statement.id, updated.clone());
            self.tx.remember(&statement.session, statement.txn_number, &what);
        }
        Ok(Some(updated))
    }

    /// Deletes a document as a client asked, and remembers the answer.
    pub(super) fn delete_told(&mut self, ns: &Namespace, id: ValueRef<'_>, delete: &Delete) -> Result<Option<Deleted>> {
        let Some(written) = self.delete(ns, id, delete)? else { return Ok(None) };
        let image = written.image.map(|image| project(image, delete.projection.as_deref(), &delete.context));
        let deleted = Deleted { deleted: 1, image: image.transpose()? };
        if let Some(statement) = &delete.statement {
            let what = Remembered::Deleted(statement.id, deleted.clone());
            self.tx.remember(&statement.session, statement.txn_number, &what);
        }
        Ok(Some(deleted))
    }
}

/// The one document that all of these are.
fn only(turns: &[Turn]) -> Option<&Turn> {
    let (first, others) = turns.split_first()?;
    let same = |other: &Turn| other.0 == first.0 && key::of(other.1.or_null()) == key::of(first.1.or_null());
    others.iter().all(same).then_some(first)
}

/// Writes to one collection that lead to one document.
fn place_of(ns: &Namespace, turn: &Turn) -> Vec<u8> {
    let mut bytes = ns.to_string().into_bytes();
    bytes.push(0);
    bytes.extend_from_slice(turn.0.collection().as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&key::of(turn.1.or_null()));
    bytes
}
