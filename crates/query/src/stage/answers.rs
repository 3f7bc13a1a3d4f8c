//! What an index has answered, kept by the values that were asked for: a `$lookup` of many orders for few customers asks
//! the same again and again.

use std::collections::HashMap;
use std::sync::Arc;

use espalier_value::{Collator, RawDoc, Result, ValueRef, document_len};

use super::group::hash::Seeded;
use crate::stream::Stream;

/// Longer answers are not kept.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// What an answer takes beside its key and its documents.
const ENTRY_BYTES: usize = 96;
/// After so many questions it shows whether they repeat.
const TRIAL: u64 = 4096;
/// They do if one in so many has been asked before.
const WORTH: u64 = 8;

pub(super) struct Answers {
    by_key: HashMap<Box<[u8]>, Arc<Vec<u8>>, Seeded>,
    /// Of the question that was asked last.
    key: Vec<u8>,
    used_bytes: usize,
    max_bytes: usize,
    asked: u64,
    known: u64,
    /// Questions do not repeat: nothing is kept any more.
    given_up: bool,
}

impl Answers {
    pub fn new(max_bytes: usize) -> Answers {
        Answers {
            by_key: HashMap::with_hasher(Seeded::new()),
            key: Vec::new(),
            used_bytes: 0,
            max_bytes,
            asked: 0,
            known: 0,
            given_up: false,
        }
    }

    /// The documents for these values, if they have been asked for before.
    pub fn find(&mut self, values: &[ValueRef<'_>], collator: Collator<'_>) -> Option<Replay> {
        if self.given_up {
            return None;
        }
        self.key.clear();
        // No encoding is the beginning of another, so that one after the other they are one key.
        values.iter().for_each(|value| collator.encode(&mut self.key, *value));
        self.asked += 1;
        let found = self.by_key.get(&*self.key).map(|bytes| Replay::new(bytes.clone()));
        self.known += u64::from(found.is_some());
        found
    }

    /// Keeps the answer to the last question, if it is worth it and short.
    pub fn keep(&mut self, mut answer: Box<dyn Stream>) -> Result<Box<dyn Stream>> {
        if self.asked == TRIAL && self.known < TRIAL / WORTH {
            self.given_up = true;
            self.by_key = HashMap::with_hasher(Seeded::new());
        }
        if self.given_up {
            return Ok(answer);
        }
        let mut bytes = Vec::new();
        while answer.advance()? {
            bytes.extend_from_slice(answer.doc().as_bytes());
            if bytes.len() > ANSWER_BYTES_MAX {
                return Ok(Box::new(Continued { begun: Replay::new(Arc::new(bytes)), rest: answer, in_rest: false }));
            }
        }
        let cost = bytes.len() + self.key.len() + ENTRY_BYTES;
        if self.used_bytes + cost > self.max_bytes {
            self.by_key.clear();
            self.used_bytes = 0;
        }
        self.used_bytes += cost;
        let bytes = Arc::new(bytes);
        self.by_key.insert(self.key.as_slice().into(), bytes.clone());
        Ok(Box::new(Replay::new(bytes)))
    }
}

/// Documents that stand one after the other in memory.
pub(super) struct Replay {
    bytes: Arc<Vec<u8>>,
    at: usize,
    next: usize,
}

impl Replay {
    pub fn new(bytes: Arc<Vec<u8>>) -> Replay {
        Replay { bytes, at: 0, next: 0 }
    }
}

impl Stream for Replay {
    fn advance(&mut self) -> Result<bool> {
        if self.next >= self.bytes.len() {
            return Ok(false);
        }
        self.at = self.next;
        self.next += document_len(&self.bytes[self.at..])?;
        Ok(true)
    }

    fn doc(&self) -> RawDoc<'_> {
        RawDoc::trusted(&self.bytes[self.at..self.next])
    }
}

/// Documents whose beginning has been read ahead.
struct Continued {
    begun: Replay,
    rest: Box<dyn Stream>,
    in_rest: bool,
}

impl Stream for Continued {
    fn advance(&mut self) -> Result<bool> {
        if !self.in_rest {
            if self.begun.advance()? {
                return Ok(true);
            }
            self.in_rest = true;
        }
        self.rest.advance()
    }

    fn doc(&self) -> RawDoc<'_> {
        if self.in_rest { self.rest.doc() } else { self.begun.doc() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use espalier_value::{ArrayBuf, DocBuf, doc};

    use super::*;
    use crate::stream::Buffered;
    use crate::testing::drain;

    fn answer(docs: Vec<DocBuf>) -> Box<dyn Stream> {
        Box::new(Buffered::new(docs))
    }

    fn find(answers: &mut Answers, value: i32) -> Option<ArrayBuf> {
        let found = answers.find(&[ValueRef::Int32(value)], Collator::SIMPLE)?;
        Some(drain(Box::new(found)).unwrap())
    }

    #[test]
    fn the_same_question_has_the_same_answer() {
        let mut answers = Answers::new(1 << 20);
        assert!(find(&mut answers, 1).is_none());
        let given = drain(answers.keep(answer(vec![doc! { "a": 1 }, doc! { "a": 2 }])).unwrap()).unwrap();
        assert_eq!(given.len(), 2);
        assert_eq!(find(&mut answers, 1).unwrap().as_raw(), given.as_raw());
        // An equal number is the same question, several values are another.
        assert!(answers.find(&[ValueRef::Double(1.0)], Collator::SIMPLE).is_some());
        assert!(answers.find(&[ValueRef::Int32(1), ValueRef::Int32(2)], Collator::SIMPLE).is_none());
        assert!(find(&mut answers, 2).is_none());
    }

    #[test]
    fn a_long_answer_is_whole_and_not_kept() {
        let text = "x".repeat(20_000);
        let docs = || -> Vec<DocBuf> { (0..10i32).map(|i| doc! { "i": i, "t": text.as_str() }).collect() };
        let mut answers = Answers::new(1 << 20);
        assert!(find(&mut answers, 1).is_none());
        let given = drain(answers.keep(answer(docs())).unwrap()).unwrap();
        assert_eq!(given.as_raw(), drain(answer(docs())).unwrap().as_raw());
        assert!(find(&mut answers, 1).is_none());
    }

    #[test]
    fn memory_is_bounded_and_questions_that_do_not_repeat_are_not_kept() {
        let mut answers = Answers::new(1_000);
        for i in 0..20 {
            assert!(find(&mut answers, i).is_none());
            answers.keep(answer(vec![doc! { "i": i }])).unwrap();
            assert!(answers.used_bytes <= 1_000);
        }
        let mut answers = Answers::new(1 << 30);
        for i in 0..TRIAL as i32 {
            assert!(find(&mut answers, i).is_none());
            answers.keep(answer(vec![doc! { "i": i }])).unwrap();
        }
        assert!(answers.given_up && find(&mut answers, 0).is_none());
    }
}
