//! Taking in what is to be sorted: keys are computed and parts put in order by whoever is free.

use std::sync::{Arc, Mutex, PoisonError};

use espalier_value::{RawDoc, Result};

use super::Run;
use super::sorter::{SortedPart, Sorter};
use crate::gather::{Gather, Made, copy};
use crate::helpers::Helpers;
use crate::stream::{Parts, Stream};

/// What may lie ready of one part.
const BYTES_MAX: usize = 512 << 10;

/// How to sort documents.
pub struct SortInput<K> {
    /// Writes the key of the document that a stream stands at; false if it is at or above the bound, so that the document
    /// is not wanted.
    pub key: K,
    pub limit: Option<u64>,
    /// The top-level fields that are looked at afterwards; `None` if all are.
    pub fields: Option<Vec<Box<str>>>,
}

impl<K> SortInput<K>
where
    K: Fn(&dyn Stream, Option<&[u8]>, &mut Vec<u8>) -> Result<bool> + Send + Sync + 'static,
{
    /// Reads all of the input into the sorter. Gives how many documents there were.
    pub fn take_in(self, input: &mut dyn Stream, sorter: &mut Sorter, run: &Run) -> Result<u64> {
        let parts = run.context.helpers.as_ref().and_then(|helpers| Some((input.parts()?, Arc::clone(helpers))));
        match parts {
            Some((parts, helpers)) => self.gather(parts, helpers, sorter, run),
            None => self.read(input, sorter, run),
        }
    }

    fn read(&self, input: &mut dyn Stream, sorter: &mut Sorter, run: &Run) -> Result<u64> {
        let (mut key, mut scratch, mut count) = (Vec::new(), Vec::new(), 0);
        while input.advance()? {
            run.context.interrupt.check()?;
            count += 1;
            key.clear();
            if (self.key)(input, sorter.bound(), &mut key)? {
                sorter.push(&key, self.needed(input.doc(), &mut scratch))?;
            }
        }
        Ok(count)
    }

    fn needed<'d>(&self, doc: RawDoc<'d>, scratch: &'d mut Vec<u8>) -> RawDoc<'d> {
        if self.fields.is_none() {
            return doc;
        }
        scratch.clear();
        copy(doc, self.fields.as_deref(), scratch);
        RawDoc::trusted(scratch)
    }

    fn gather(self, parts: Box<dyn Parts>, helpers: Arc<dyn Helpers>, sorter: &mut Sorter, run: &Run) -> Result<u64> {
        let context = Arc::clone(&run.context);
        // What the sorter has no use for any more need not be kept by those who read ahead.
        let bound: Arc<Mutex<Option<Arc<[u8]>>>> = Arc::default();
        let known = Arc::clone(&bound);
        let mut gather = Gather::new(parts, helpers, move |part| {
            let bound = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let (mut key, mut scratch, mut count) = (Vec::new(), Vec::new(), 0u64);
            let mut sorted = SortedPart::default();
            let mut more = true;
            while sorted.bytes() < BYTES_MAX {
                more = part.advance()?;
                if !more {
                    break;
                }
                context.interrupt.check()?;
                count += 1;
                key.clear();
                if (self.key)(part, bound.as_deref(), &mut key)? {
                    sorted.push(&key, self.needed(part.doc(), &mut scratch));
                }
            }
            sorted.finish(self.limit);
            Ok(Made { made: (sorted, count), more })
        });
        let mut total = 0;
        while let Some((part, count)) = gather.next()? {
            run.context.interrupt.check()?;
            total += count;
            sorter.absorb(part)?;
            if sorter.bound().is_some() {
                *bound.lock().unwrap_or_else(PoisonError::into_inner) = sorter.bound().map(Arc::from);
            }
        }
        Ok(total)
    }
}
