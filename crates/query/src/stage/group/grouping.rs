//! The stream of a `$group`: takes everything in, then gives one document a group.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef};

use super::super::Run;
use super::super::spilled::{Merge, Source, Writer, Written};
use super::inputs::{Fields, From};
use super::table::{self, Table};
use super::{Group, key_fields};
use crate::accumulator::{Accumulator, State};
use crate::expression::Env;
use crate::stream::{Replaced, Stream};

pub(in crate::stage) struct Grouping {
    group: Arc<Group>,
    run: Run,
    state: Phase,
    current: DocBuf,
}

enum Phase {
    Unread(Box<dyn Stream>),
    /// All in memory; the next one to give.
    Held(Table, usize),
    /// Partial results on disk. The flag says whether the merge stands at a record that has not been used.
    Spilled(Box<Source>, bool),
}

impl Grouping {
    pub fn new(group: Arc<Group>, input: Box<dyn Stream>, run: Run) -> Grouping {
        Grouping { group, run, state: Phase::Unread(input), current: DocBuf::new() }
    }
}

impl Stream for Grouping {
    fn advance(&mut self) -> Result<bool> {
        if let Phase::Unread(input) = &mut self.state {
            self.state = read(&self.group, &mut **input, &self.run)?;
        }
        let more = match &mut self.state {
            Phase::Unread(_) => false,
            Phase::Held(table, next) => {
                if *next == table.len() {
                    return Ok(false);
                }
                table.finish(*next, &self.group, &mut self.current);
                *next += 1;
                true
            }
            Phase::Spilled(source, pending) => merge_next(&self.group, source, pending, &self.run, &mut self.current)?,
        };
        if more && self.current.len_bytes() > self.run.limits.document_bytes_max {
            let message = format!("$group made a document of {} bytes", self.current.len_bytes());
            return Err(Error::new(Code::BSONObjectTooLarge, message));
        }
        Ok(more)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }
}

/// Takes in the whole input.
fn read(group: &Group, input: &mut dyn Stream, run: &Run) -> Result<Phase> {
    let mut table = Table::new(group);
    let mut files: Vec<Written> = Vec::new();
    let mut key = Vec::new();
    let apart = input.lend_apart(&group.reads());
    while input.advance()? {
        run.context.interrupt.check()?;
        let replaced = if apart { input.replaced() } else { None };
        take(group, &mut table, input.doc(), replaced, run, &mut key)?;
        if table.memory_bytes > run.limits.stage_memory_bytes_max {
            files.push(write(&mut table, run)?);
        }
    }
    if files.is_empty() {
        return Ok(Phase::Held(table, 0));
    }
    files.push(write(&mut table, run)?);
    let mut merge = Source::Merge(Box::new(Merge::new(files.into_iter().map(Source::File).collect())?));
    let pending = merge.advance()?;
    Ok(Phase::Spilled(Box::new(merge), pending))
}

/// Adds one document to its group.
#[inline]
fn take(
    group: &Group,
    table: &mut Table,
    doc: RawDoc<'_>,
    replaced: Option<Replaced<'_>>,
    run: &Run,
    key: &mut Vec<u8>,
) -> Result<()> {
    let context = &*run.context;
    let mut fields = Fields::new();
    group.inputs.read(doc, replaced, &mut fields);
    let env = Env::new(doc, context).with(replaced);
    let mut place = 0;
    for (at, from) in group.inputs.from.iter().enumerate() {
        let computed;
        let value: Option<ValueRef<'_>> = match from {
            From::Field(name) => fields[*name],
            From::Constant => group.expression(at).as_constant().and_then(|value| value.as_ref()),
            From::Computed if at > 0 && table.is_full(place, at - 1) => continue,
            From::Computed => {
                computed = group.expression(at).eval(&env)?;
                computed.as_ref()
            }
        };
        if at == 0 {
            let id = value.unwrap_or(ValueRef::Null);
            key.clear();
            context.collator().encode(key, id);
            place = table.place(key, id, group, context)?;
        } else {
            table.push(place, at - 1, value)?;
        }
    }
    Ok(())
}

/// Puts the groups gathered so far on disk.
#[cold]
fn write(table: &mut Table, run: &Run) -> Result<Written> {
    let Some(spill) = &run.spill else {
        let message = format!(
            "Exceeded memory limit of {} bytes for $group, but didn't allow external sort. Pass allowDiskUse:true to \
             opt in.",
            run.limits.stage_memory_bytes_max
        );
        return Err(Error::new(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message));
    };
    let mut writer = Writer::new(&**spill)?;
    table.drain(&mut |key, record| writer.append(key, record))?;
    writer.finish()
}

/// Joins the partial results of the next key; earlier files come first, as their documents did.
fn merge_next(group: &Group, source: &mut Source, pending: &mut bool, run: &Run, out: &mut DocBuf) -> Result<bool> {
    if !*pending {
        return Ok(false);
    }
    run.context.interrupt.check()?;
    let key = source.key().to_vec();
    let first = DocBuf::from_raw(source.doc());
    let id = first.as_raw().first().map_or(ValueRef::Null, |elem| elem.value());
    let mut states: Vec<State> =
        group.accumulators.iter().map(|spec| spec.make(key_fields(id), &run.context)).collect::<Result<_>>()?;
    while *pending && source.key() == key {
        for (state, partial) in states.iter_mut().zip(source.doc().iter().skip(1)) {
            state.merge(partial.value())?;
        }
        *pending = source.advance()?;
    }
    table::finish(id, &mut states, group, out);
    Ok(true)
}
