//! A retryable write: which statements it has, and which of them were carried out before.

use std::collections::{HashMap, HashSet};

use espalier_store::{Deleted, Remembered, SessionId, Statement, Statements, Updated};
use espalier_value::number::Number;
use espalier_value::{Code, Error, Result, ValueRef};

use crate::fields::Field;
use crate::reply::DocWriter;

/// A retryable write under way.
pub struct Retry {
    session: SessionId,
    txn_number: i64,
    inserted: HashSet<i32>,
    answers: HashMap<i32, Answer>,
    /// Statements of this command that were carried out before.
    retried: Vec<i32>,
}

#[derive(Clone)]
enum Answer {
    Updated(Updated),
    Deleted(Deleted),
}

impl Retry {
    pub fn new(session: SessionId, txn_number: i64, remembered: Vec<Remembered>) -> Retry {
        let (mut inserted, mut answers) = (HashSet::new(), HashMap::new());
        for past in remembered {
            match past {
                Remembered::Inserted(ids) => inserted.extend(ids),
                Remembered::Updated(id, updated) => drop(answers.insert(id, Answer::Updated(updated))),
                Remembered::Deleted(id, deleted) => drop(answers.insert(id, Answer::Deleted(deleted))),
                Remembered::Committed => {}
            }
        }
        Retry { session, txn_number, inserted, answers, retried: Vec::new() }
    }

    pub fn statement(&self, id: i32) -> Statement {
        Statement { session: self.session, txn_number: self.txn_number, id }
    }

    pub fn statements(&self, ids: Vec<i32>) -> Statements {
        Statements { session: self.session, txn_number: self.txn_number, ids }
    }

    /// Whether this document was inserted before.
    pub fn inserted(&mut self, id: i32) -> bool {
        let done = self.inserted.contains(&id) || self.answers.contains_key(&id);
        if done {
            self.retried.push(id);
        }
        done
    }

    /// What came of this update before. As in MongoDB, a statement is known by its number and not by its words.
    pub fn updated(&mut self, id: i32) -> Option<Updated> {
        let past = match self.answers.get(&id) {
            Some(Answer::Updated(past)) => past.clone(),
            Some(Answer::Deleted(past)) => {
                Updated { matched: past.deleted, image: past.image.clone(), ..Updated::default() }
            }
            None if self.inserted.contains(&id) => Updated { matched: 1, ..Updated::default() },
            None => return None,
        };
        self.retried.push(id);
        Some(past)
    }

    pub fn deleted(&mut self, id: i32) -> Option<Deleted> {
        let past = match self.answers.get(&id) {
            Some(Answer::Deleted(past)) => past.clone(),
            Some(Answer::Updated(past)) => Deleted { deleted: 1, image: past.image.clone() },
            None if self.inserted.contains(&id) => Deleted { deleted: 1, image: None },
            None => return None,
        };
        self.retried.push(id);
        Some(past)
    }

    /// `retriedStmtIds`, if there are any.
    pub fn write(&self, reply: &mut DocWriter<'_>) {
        if !self.retried.is_empty() {
            let mut ids = reply.array("retriedStmtIds");
            self.retried.iter().for_each(|id| {
                ids.push(*id);
            });
        }
    }

    pub fn retried(&self) -> &[i32] {
        &self.retried
    }
}

/// The statement ids of a command: counted from `stmtId`, or listed in `stmtIds`.
#[derive(Default)]
pub struct StatementIds {
    first: Option<i32>,
    list: Option<Vec<i32>>,
}

impl StatementIds {
    /// Takes `stmtId` or `stmtIds`.
    pub fn take(&mut self, field: &Field<'_, '_>) -> Result<()> {
        match field.value() {
            ValueRef::Array(ids) => {
                let ids: Option<Vec<i32>> = ids.iter().map(whole).collect();
                self.list = Some(ids.ok_or_else(|| field.wrong_type("int"))?);
            }
            value => self.first = Some(whole(value).ok_or_else(|| field.wrong_type("int"))?),
        }
        Ok(())
    }

    pub fn check(&self, len: usize) -> Result<()> {
        match (&self.first, &self.list) {
            (Some(_), Some(_)) => {
                let message = "May not specify both stmtId and stmtIds in write command";
                Err(Error::new(Code::InvalidOptions, message))
            }
            (None, Some(list)) if list.len() != len => {
                let message = format!(
                    "Number of statement ids must match the number of batch entries. Got {} statement ids but {len} \
                     operations.",
                    list.len()
                );
                Err(Error::new(Code::InvalidLength, message))
            }
            _ => Ok(()),
        }
    }

    /// The id of a statement by its place in the batch.
    pub fn of(&self, index: usize) -> i32 {
        let counted = || self.first.unwrap_or(0).saturating_add(i32::try_from(index).unwrap_or(i32::MAX));
        self.list.as_ref().and_then(|list| list.get(index).copied()).unwrap_or_else(counted)
    }
}

fn whole(value: ValueRef<'_>) -> Option<i32> {
    i32::try_from(Number::of(value)?.as_exact_i64()?).ok().filter(|id| *id >= 0)
}
