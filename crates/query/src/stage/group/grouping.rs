//! The stream of a `$group`: takes everything in, then gives one document a group.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, Path, RawArray, RawDoc, Result, ValueRef};

use super::super::Run;
use super::super::spilled::{Merge, Source, Writer, Written};
use super::inputs::{Fields, From, Inputs};
use super::table::{self, Table};
use super::{Group, key_fields};
use crate::accumulator::{Accumulator, State};
use crate::expression::{Env, field_path};
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
    let apart = input.lend_apart(&group.reads());
    let inputs_apart = apart.as_ref().map(|path| group.inputs_apart(path));
    let mut taking = Taking {
        group,
        inputs: inputs_apart.as_ref().unwrap_or(&group.inputs),
        run,
        table: Table::new(group),
        files: Vec::new(),
        key: Vec::new(),
    };
    while input.advance()? {
        run.context.interrupt.check()?;
        match &apart {
            None => taking.document(input.doc())?,
            Some(path) => taking.apart(input.doc(), path, input.values())?,
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

/// The groups while documents come in.
struct Taking<'g> {
    group: &'g Group,
    inputs: &'g Inputs,
    run: &'g Run,
    table: Table,
    files: Vec<Written>,
    /// Reused, so that it is allocated once.
    key: Vec<u8>,
}

impl Taking<'_> {
    #[inline]
    fn document(&mut self, doc: RawDoc<'_>) -> Result<()> {
        let mut fields = Fields::new();
        self.inputs.read(doc, &mut fields);
        self.take(doc, &fields, None, None)
    }

    /// A document and the values that come in the place of what it has at the path; if there are none, the document is
    /// complete.
    fn apart(&mut self, doc: RawDoc<'_>, path: &Path, values: Option<RawArray<'_>>) -> Result<()> {
        let mut fields = Fields::new();
        self.inputs.read(doc, &mut fields);
        let Some(values) = values else {
            let value = field_path::walk(doc, path);
            return self.element(doc, &fields, value.as_ref(), None);
        };
        for value in values.iter() {
            self.element(doc, &fields, Some(value), Some(Replaced { path, value }))?;
        }
        Ok(())
    }

    #[inline]
    fn element(
        &mut self,
        doc: RawDoc<'_>,
        fields: &[Option<ValueRef<'_>>],
        value: Option<ValueRef<'_>>,
        replaced: Option<Replaced<'_>>,
    ) -> Result<()> {
        // What is no document has no fields; the documents of an array are left to the expressions.
        let inner_doc = value.and_then(ValueRef::as_doc).unwrap_or(RawDoc::EMPTY);
        let mut inner = Fields::new();
        self.inputs.inner.read(inner_doc, &mut inner);
        self.take(doc, fields, Some(Element { value, inner: &inner }), replaced)
    }

    /// Gives the values to their group.
    #[inline]
    fn take(
        &mut self,
        doc: RawDoc<'_>,
        fields: &[Option<ValueRef<'_>>],
        element: Option<Element<'_>>,
        replaced: Option<Replaced<'_>>,
    ) -> Result<()> {
        let (group, table, context) = (self.group, &mut self.table, &*self.run.context);
        let env = Env::new(doc, context).with(replaced);
        let mut place = 0;
        for (at, from) in self.inputs.from.iter().enumerate() {
            let computed;
            let value: Option<ValueRef<'_>> = match (from, &element) {
                (From::Field(name), _) => fields[*name],
                (From::Constant, _) => group.expression(at).as_constant().and_then(|value| value.as_ref()),
                (From::Element, Some(element)) => element.value,
                (From::Inner(name), Some(element)) if !element.is_array() => element.inner[*name],
                _ if at > 0 && table.is_full(place, at - 1) => continue,
                _ => {
                    computed = group.expression(at).eval(&env)?;
                    computed.as_ref()
                }
            };
            if at == 0 {
                let id = value.unwrap_or(ValueRef::Null);
                self.key.clear();
                context.collator().encode(&mut self.key, id);
                place = table.place(&self.key, id, group, context)?;
            } else {
                table.push(place, at - 1, value)?;
            }
        }
        if table.memory_bytes > self.run.limits.stage_memory_bytes_max {
            self.files.push(write(table, self.run)?);
        }
        Ok(())
    }
}

/// A value that is lent apart from its document, and those of its fields that are read.
struct Element<'a> {
    value: Option<ValueRef<'a>>,
    inner: &'a [Option<ValueRef<'a>>],
}

impl Element<'_> {
    #[inline]
    fn is_array(&self) -> bool {
        matches!(self.value, Some(ValueRef::Array(_)))
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
