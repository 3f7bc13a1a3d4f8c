//! Running `$setWindowFields` over documents that come sorted by partition.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value};

use super::queue::DocQueue;
use super::{SetWindowFields, partition};
use crate::expression::Env;
use crate::stage::Run;
use crate::stream::Stream;
use crate::window::{Function, Runner};

pub(super) struct Windowing {
    stage: Arc<SetWindowFields>,
    input: Box<dyn Stream>,
    run: Run,
    phase: Phase,
    /// The partition's functions, in the order of the output fields.
    runners: Vec<Box<dyn Runner>>,
    /// The partition's key.
    partition: Vec<u8>,
    /// The key of the document just read.
    key: Vec<u8>,
    queue: DocQueue,
    /// The values of the document that goes out.
    values: Vec<Value<'static>>,
    waited: DocBuf,
    current: DocBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing has been read.
    Start,
    Within,
    /// The input stands at the first document of the next partition.
    Between,
    /// The input is at its end.
    End,
}

impl Windowing {
    pub fn new(stage: Arc<SetWindowFields>, input: Box<dyn Stream>, run: &Run) -> Windowing {
        Windowing {
            stage,
            input,
            run: run.clone(),
            phase: Phase::Start,
            runners: Vec::new(),
            partition: Vec::new(),
            key: Vec::new(),
            queue: DocQueue::new(run),
            values: Vec::new(),
            waited: DocBuf::new(),
            current: DocBuf::new(),
        }
    }

    /// Moves the input on, and into the next phase if need be. True if there is a document of this partition.
    fn read(&mut self) -> Result<bool> {
        self.run.context.interrupt.check()?;
        if !self.input.advance()? {
            self.phase = Phase::End;
            return self.end_partition().map(|()| false);
        }
        if let Some(by) = &self.stage.partition_by {
            self.key.clear();
            partition::key(by, &Env::new(self.input.doc(), &self.run.context), &mut self.key)?;
        }
        if self.phase == Phase::Start {
            self.phase = Phase::Between;
            return Ok(false);
        }
        if self.key != self.partition {
            self.phase = Phase::Between;
            return self.end_partition().map(|()| false);
        }
        Ok(true)
    }

    fn end_partition(&mut self) -> Result<()> {
        self.runners.iter_mut().try_for_each(|runner| runner.end())
    }

    fn start_partition(&mut self) -> Result<()> {
        std::mem::swap(&mut self.partition, &mut self.key);
        let start = |function: &Function| function.start(&self.run.context);
        self.runners = self.stage.functions.iter().map(start).collect::<Result<_>>()?;
        self.phase = Phase::Within;
        Ok(())
    }

    /// Shows the input's document to the functions. True if all know their value for it, and nobody waits before it.
    fn take_in(&mut self) -> Result<bool> {
        let doc = self.input.doc();
        let env = Env::new(doc, &self.run.context);
        let position = self.stage.position.read(doc);
        let mut held = 0;
        for (function, runner) in self.stage.functions.iter().zip(&mut self.runners) {
            let input = if runner.needs_input() { function.input().eval(&env)? } else { Value::Missing };
            runner.push(&position, input)?;
            held += runner.memory();
        }
        let limit = self.run.limits.stage_memory_bytes_max;
        if held > limit {
            let message =
                format!("Exceeded memory limit in $setWindowFields, used {held} bytes but max allowed is {limit}");
            return Err(Error::new(Code(5414201), message));
        }
        if self.queue.is_empty() && self.is_ready() {
            return Ok(true);
        }
        self.queue.push(doc, held)?;
        Ok(false)
    }

    fn is_ready(&self) -> bool {
        self.runners.iter().all(|runner| runner.is_ready())
    }

    fn next_values(&mut self) -> Result<()> {
        self.values.clear();
        for runner in &mut self.runners {
            self.values.push(runner.next()?);
        }
        Ok(())
    }
}

fn set(stage: &SetWindowFields, doc: RawDoc<'_>, values: &[Value<'static>], run: &Run, out: &mut DocBuf) -> Result<()> {
    stage.output.apply_bound(doc, values.iter().map(Value::as_ref), &run.context, out)
}

impl Stream for Windowing {
    fn advance(&mut self) -> Result<bool> {
        loop {
            let all_here = matches!(self.phase, Phase::Between | Phase::End);
            if !self.queue.is_empty() && (all_here || self.is_ready()) {
                self.run.context.interrupt.check()?;
                self.next_values()?;
                self.queue.pop(&mut self.waited)?;
                set(&self.stage, self.waited.as_raw(), &self.values, &self.run, &mut self.current)?;
                return Ok(true);
            }
            match self.phase {
                Phase::End => return Ok(false),
                Phase::Between => self.start_partition()?,
                Phase::Start | Phase::Within => {
                    if !self.read()? {
                        continue;
                    }
                }
            }
            if self.take_in()? {
                self.next_values()?;
                set(&self.stage, self.input.doc(), &self.values, &self.run, &mut self.current)?;
                return Ok(true);
            }
        }
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }
}
