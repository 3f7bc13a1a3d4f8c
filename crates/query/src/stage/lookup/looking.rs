//! Running `$lookup`.

use std::sync::Arc;

use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawDoc, Result, ValueRef};
use smallvec::SmallVec;

use super::{Lookup, Spec};
use crate::context::Context;
use crate::expression::Env;
use crate::stage::Run;
use crate::stage::answers::Replay;
use crate::stage::matches::{Matches, join_values};
use crate::stage::sub_pipeline::Prepared;
use crate::stage::unwind::{Unwind, replace};
use crate::stream::Stream;

pub(super) struct Looking {
    stage: Arc<Lookup>,
    input: Box<dyn Stream>,
    run: Run,
    /// The whole pipeline on its collection, once it is needed.
    prepared: Option<Prepared>,
    /// The collection by the value of a field, once it is needed.
    matches: Option<Matches>,
    kept: Kept,
    /// The results for the current input document that have not come out, if they come one by one.
    open: Option<Box<dyn Stream>>,
    /// How many have.
    count: i64,
    current: DocBuf,
    scratch: DocBuf,
}

/// Results that are the same for every document.
enum Kept {
    Unknown,
    Known(Arc<Vec<u8>>),
    /// They would take too much memory: they are made anew each time.
    TooMany,
}

impl Looking {
    pub fn new(stage: Arc<Lookup>, input: Box<dyn Stream>, run: &Run) -> Looking {
        Looking {
            stage,
            input,
            run: run.clone(),
            prepared: None,
            matches: None,
            kept: Kept::Unknown,
            open: None,
            count: 0,
            current: DocBuf::new(),
            scratch: DocBuf::new(),
        }
    }

    /// What belongs to the current input document.
    fn results(&mut self) -> Result<Box<dyn Stream>> {
        let stage = self.stage.clone();
        let spec = &*stage.spec;
        let run = match &spec.lets[..] {
            [] => self.run.clone(),
            _ => self.run.within(Arc::new(bind(spec, self.input.doc(), &self.run.context)?)),
        };
        if let Some(error) = &spec.early {
            return Err(error.clone());
        }
        if spec.constant {
            return self.constant(spec, &run);
        }
        let owned;
        let (path, values);
        match (&spec.equality, &spec.join) {
            (Some((local, foreign)), _) => {
                (path, values) = (foreign, join_values(self.input.doc(), local));
            }
            (None, Some(join)) => match join.value(&run.context)? {
                Some(value) => {
                    owned = value;
                    (path, values) = (&join.path, SmallVec::from_slice(&[owned.or_null()]));
                }
                None => return self.prepared(spec)?.open(&run),
            },
            (None, None) => return self.prepared(spec)?.open(&run),
        }
        let matches = match &mut self.matches {
            Some(matches) => matches,
            none => none.insert(Matches::new(spec.other.prepare_source(&self.run)?, path.clone(), &self.run)?),
        };
        let found = matches.open(&values, &run)?;
        if spec.whole { Ok(found) } else { spec.other.pipeline().run_all(found, &run) }
    }

    fn prepared(&mut self, spec: &Spec) -> Result<&Prepared> {
        match &mut self.prepared {
            Some(prepared) => Ok(prepared),
            none => Ok(none.insert(spec.other.prepare(&self.run)?)),
        }
    }

    /// Results that do not depend on the document are made once.
    fn constant(&mut self, spec: &Spec, run: &Run) -> Result<Box<dyn Stream>> {
        if let Kept::Unknown = self.kept {
            let mut bytes = Vec::new();
            let mut stream = self.prepared(spec)?.open(run)?;
            self.kept = loop {
                self.run.context.interrupt.check()?;
                if !stream.advance()? {
                    break Kept::Known(Arc::new(bytes));
                }
                bytes.extend_from_slice(stream.doc().as_bytes());
                if bytes.len() > self.run.limits.stage_memory_bytes_max {
                    break Kept::TooMany;
                }
            };
        }
        match &self.kept {
            Kept::Known(bytes) => Ok(Box::new(Replay::new(bytes.clone()))),
            _ => self.prepared(spec)?.open(run),
        }
    }

    /// All results in one array.
    fn gather(&mut self) -> Result<()> {
        let mut results = self.results()?;
        let mut array = ArrayBuf::new();
        while results.advance()? {
            self.run.context.interrupt.check()?;
            array.push(results.doc());
            if array.len_bytes() > self.run.limits.stage_memory_bytes_max {
                let message = format!(
                    "Total size of documents in a collection matching pipeline's $lookup stage exceeds {} bytes",
                    self.run.limits.stage_memory_bytes_max
                );
                return Err(Error::new(Code(4568), message));
            }
        }
        let spec = &self.stage.spec;
        let (path, array) = (spec.as_path.parts(), Some(ValueRef::Array(array.as_raw())));
        if self.stage.in_place {
            replace(self.input.doc(), path, array, &mut self.current);
            return Ok(());
        }
        // The array comes last, and so does the top-level field that it lies in.
        replace(self.input.doc(), path, None, &mut self.scratch);
        replace(self.scratch.as_raw(), path, array, &mut self.current);
        if path.len() > 1 {
            let first = spec.as_path.first();
            let (last, others): (Vec<_>, Vec<_>) = self.current.as_raw().iter().partition(|e| e.name() == first);
            self.scratch.clear();
            self.scratch.append_with(|out| others.iter().chain(&last).for_each(|e| out.extend_from_slice(e.raw())));
            std::mem::swap(&mut self.current, &mut self.scratch);
        }
        Ok(())
    }

    /// The next document of a `$lookup` that unwinds its array.
    fn next_unwound(&mut self, unwind: &Unwind) -> Result<bool> {
        loop {
            self.run.context.interrupt.check()?;
            let Some(open) = &mut self.open else {
                if !self.input.advance()? {
                    return Ok(false);
                }
                self.open = Some(self.results()?);
                self.count = 0;
                continue;
            };
            let path = unwind.path.parts();
            let index = if open.advance()? {
                let found = Some(ValueRef::Document(open.doc()));
                replace(self.input.doc(), path, found, &mut self.current);
                self.count += 1;
                ValueRef::Int64(self.count - 1)
            } else {
                self.open = None;
                if self.count > 0 || !unwind.preserve {
                    continue;
                }
                replace(self.input.doc(), path, None, &mut self.current);
                ValueRef::Null
            };
            if let Some(path) = &unwind.index {
                replace(self.current.as_raw(), path.parts(), Some(index), &mut self.scratch);
                std::mem::swap(&mut self.current, &mut self.scratch);
            }
            return Ok(true);
        }
    }
}

/// The context with the stage's variables.
fn bind(spec: &Spec, doc: RawDoc<'_>, context: &Context) -> Result<Context> {
    let env = Env::new(doc, context);
    let mut lets = Vec::with_capacity(spec.lets.len());
    for (name, value) in &spec.lets {
        lets.push((name.clone(), value.eval(&env)?.into_owned()));
    }
    Ok(context.with_lets(lets))
}

impl Stream for Looking {
    fn advance(&mut self) -> Result<bool> {
        if self.stage.unwind.is_some() {
            let stage = self.stage.clone();
            return stage.unwind.as_ref().map_or(Ok(false), |unwind| self.next_unwound(unwind));
        }
        if !self.input.advance()? {
            return Ok(false);
        }
        self.gather()?;
        Ok(true)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }
}
