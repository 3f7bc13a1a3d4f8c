//! The stream of a `$group`: takes everything in, then gives one document a group.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, ValueRef};

use super::super::Run;
use super::super::spilled::{Merge, Source, Writer, Written};
use super::columns::{Columns, Rows};
use super::feeding::{Feeding, Sink};
use super::hash::Seeded;
use super::inputs::Inputs;
use super::table::{self, Table};
use super::{Group, key_fields};
use crate::accumulator::{Accumulator, State};
use crate::gather::{Gather, Made};
use crate::helpers::Helpers;
use crate::stream::{Parts, Stream};

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
fn read(group: &Arc<Group>, input: &mut dyn Stream, run: &Run) -> Result<Phase> {
    let apart = input.lend_apart(&group.reads());
    let inputs_apart = apart.as_ref().map(|path| group.inputs_apart(path));
    let table = Table::new(group);
    let mut taking = Taking { group, run, seed: table.seed(), table, files: Vec::new(), key: Vec::new(), place: 0 };
    let partials = apart.is_none() && input.lend_partials();
    let parts = run
        .context
        .helpers
        .as_ref()
        .filter(|_| !partials)
        .and_then(|helpers| Some((input.parts()?, Arc::clone(helpers))));
    if let Some((parts, helpers)) = parts {
        let mut gather = gather(group, apart, inputs_apart, &taking, parts, helpers);
        while let Some(rows) = gather.next()? {
            run.context.interrupt.check()?;
            rows.feed(group, &mut taking)?;
        }
    } else {
        let inputs = inputs_apart.as_ref().unwrap_or(&group.inputs);
        let feeding = Feeding { group, inputs, apart: apart.as_ref(), context: &run.context };
        while input.advance()? {
            run.context.interrupt.check()?;
            if partials && let Some(partial) = input.partial() {
                taking.partial(partial)?;
                continue;
            }
            feeding.feed(input, &mut taking)?;
        }
    }
    let Taking { mut table, mut files, .. } = taking;
    if files.is_empty() {
        return Ok(Phase::Held(table, 0));
    }
    files.push(write(&mut table, run)?);
    let mut merge = Source::Merge(Box::new(Merge::new(files.into_iter().map(Source::File).collect())?));
    let pending = merge.advance()?;
    Ok(Phase::Spilled(Box::new(merge), pending))
}

/// Has the values taken out of the documents by whoever is free.
fn gather(
    group: &Arc<Group>,
    apart: Option<Path>,
    inputs_apart: Option<Inputs>,
    taking: &Taking<'_>,
    parts: Box<dyn Parts>,
    helpers: Arc<dyn Helpers>,
) -> Gather<Rows> {
    let (group, context, seed) = (Arc::clone(group), Arc::clone(&taking.run.context), taking.seed.clone());
    Gather::new(parts, helpers, move |part| {
        let inputs = inputs_apart.as_ref().unwrap_or(&group.inputs);
        let feeding = Feeding { group: &group, inputs, apart: apart.as_ref(), context: &context };
        let mut columns = Columns::new(&context, seed.clone());
        // An error counts after what the documents before it lead to.
        let more = fill(&feeding, part, &mut columns);
        columns.rows.end = more.as_ref().err().cloned();
        Ok(Made { made: columns.rows, more: more.unwrap_or(false) })
    })
}

/// Reads until there is enough; false if the part is at its end.
fn fill(feeding: &Feeding<'_>, part: &mut dyn Stream, columns: &mut Columns<'_>) -> Result<bool> {
    while !columns.is_enough() {
        if !part.advance()? {
            return Ok(false);
        }
        feeding.context.interrupt.check()?;
        feeding.feed(part, columns)?;
    }
    Ok(true)
}

/// The groups while values come in.
pub(super) struct Taking<'g> {
    group: &'g Group,
    run: &'g Run,
    table: Table,
    seed: Seeded,
    files: Vec<Written>,
    /// Reused, so that it is allocated once.
    key: Vec<u8>,
    /// Of the document whose values come in.
    place: usize,
}

impl Taking<'_> {
    /// Begins the values of a document whose key has been encoded.
    #[inline]
    pub fn place(&mut self, key: &[u8], hash: u64, id: ValueRef<'_>) -> Result<()> {
        self.place = self.table.place(key, hash, id, self.group, &self.run.context)?;
        Ok(())
    }

    /// What many documents of one group add up to.
    fn partial(&mut self, partial: RawDoc<'_>) -> Result<()> {
        let mut values = partial.iter().map(|elem| elem.value());
        self.key(values.next().unwrap_or(ValueRef::Null))?;
        for (at, value) in values.enumerate().take(self.group.accumulators.len()) {
            self.table.merge(self.place, at, value)?;
        }
        self.end()
    }
}

impl Sink for Taking<'_> {
    #[inline]
    fn key(&mut self, id: ValueRef<'_>) -> Result<()> {
        self.key.clear();
        self.run.context.collator().encode(&mut self.key, id);
        let hash = self.seed.hash(&self.key);
        self.place = self.table.place(&self.key, hash, id, self.group, &self.run.context)?;
        Ok(())
    }

    #[inline]
    fn is_full(&self, accumulator: usize) -> bool {
        self.table.is_full(self.place, accumulator)
    }

    #[inline]
    fn value(&mut self, accumulator: usize, value: Option<ValueRef<'_>>) -> Result<()> {
        self.table.push(self.place, accumulator, value)
    }

    fn failure(&mut self, error: Error) -> Result<()> {
        Err(error)
    }

    #[inline]
    fn end(&mut self) -> Result<()> {
        if self.table.memory_bytes > self.run.limits.stage_memory_bytes_max {
            self.files.push(write(&mut self.table, self.run)?);
        }
        Ok(())
    }
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
