//! Inserting logical documents, and the insert that an upsert is.

use espalier_store::{Insert, Inserted, Mode, Namespace, Remembered, Update, Updated, Want};
use espalier_value::{Code, RawDoc, Result, Value};

use super::events::project;
use super::{Turn, find_one, layout_to_write, next_id};
use crate::roles::Roles;
use crate::txn::PatternedTxn;

/// Documents that an insert of many commits together.
const INSERT_DOCS: usize = 1_000;
const INSERT_BYTES: usize = 4 << 20;

impl PatternedTxn {
    pub(crate) fn insert_logical(&mut self, ns: &Namespace, docs: &[RawDoc<'_>], how: &Insert) -> Result<Inserted> {
        if let [doc] = docs
            && let Some(inserted) = self.insert_combined(ns, *doc, how)?
        {
            return Ok(inserted);
        }
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
            let turns = self.turns(ns, chunk, how)?;
            let done = self.atomically(ns, &how.context, turns, |write| {
                let done = write.insert(ns, chunk, &below)?;
                if let Some(statements) = &how.statements {
                    let failed = |at: usize| done.errors.iter().any(|(failed, _)| *failed == at);
                    let tried = if how.ordered { done.errors.first().map_or(count, |(at, _)| *at) } else { count };
                    let ids =
                        (0..tried).filter(|at| !failed(*at)).filter_map(|at| statements.ids.get(next + at).copied());
                    let what = Remembered::Inserted(ids.collect());
                    write.tx.remember(&statements.session, statements.txn_number, &what);
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

    /// The documents that derivations will write to because of an insert, so that those who add to one wait for each
    /// other instead of starting over.
    pub(super) fn turns(&self, ns: &Namespace, docs: &[RawDoc<'_>], how: &Insert) -> Result<Vec<Turn>> {
        if self.begin.mode == Mode::Transaction {
            return Ok(Vec::new());
        }
        let at = self.now(&how.context)?;
        let Some(roles) = Roles::of(&*at, ns)? else { return Ok(Vec::new()) };
        let mut turns = Vec::new();
        for doc in docs {
            turns.extend(roles.layout.as_ref().and_then(|layout| layout.turn(ns, *doc)));
            turns.extend(roles.leads_to(&*at, ns, *doc, |_| true)?);
        }
        Ok(turns)
    }

    /// `None` if a match has appeared meanwhile.
    pub(super) fn upsert(&mut self, ns: &Namespace, update: &Update) -> Result<Option<Updated>> {
        let equalities = update.filter.equalities()?;
        let doc = update.update.upsert(&equalities, update.new_id, &update.context)?;
        let id = crate::bson::id_of(doc.as_raw());
        let how = Insert {
            ordered: true,
            bypass_validation: update.bypass_validation,
            statements: None,
            context: update.context.clone(),
        };
        let turns = self.turns(ns, &[doc.as_raw()], &how)?;
        let inserted = self.atomically(ns, &update.context, turns, |write| {
            let done = write.insert(ns, &[doc.as_raw()], &how)?;
            if let Some((_, error)) = done.errors.into_iter().next() {
                return Err(error);
            }
            let image = match update.want {
                Want::After => {
                    let layout = layout_to_write(write.tx, ns)?;
                    let layout = layout.as_ref().map(|(layout, _)| layout);
                    let image = find_one(write.tx, layout, ns, id, &update.context)?;
                    image.map(|image| project(image, update.projection.as_deref(), &update.context)).transpose()?
                }
                _ => None,
            };
            let updated = Updated { matched: 0, modified: 0, upserted_id: Some(Value::own(id)), image };
            if let Some(statement) = &update.statement {
                let what = Remembered::Updated(statement.id, updated.clone());
                write.tx.remember(&statement.session, statement.txn_number, &what);
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
}
