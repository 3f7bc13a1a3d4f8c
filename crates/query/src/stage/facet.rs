//! `$facet` runs several pipelines over the same input and gives one document with an array for each.

use std::sync::{Arc, Mutex};

use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawArray, RawDoc, Result, ValueRef};

use super::pipeline::{bound, fuse, parse_stages, string_together};
use super::spilled::{Writer, Written};
use super::{Definition, Parse, Parser, Run, Stage, Stages, leading, one};
use crate::expression::{Deps, field_path};
use crate::stream::Stream;

pub(super) static FACET: Definition =
    Definition { name: "$facet", parse: Parse::Stage(parse), doc: "Runs several pipelines over the same input." };

/// Stages that are refused inside by name, whether Espalier has them or not.
const NOT_INSIDE: [&str; 12] = [
    "$changeStream",
    "$collStats",
    "$currentOp",
    "$documents",
    "$facet",
    "$indexStats",
    "$listLocalSessions",
    "$listSessions",
    "$merge",
    "$out",
    "$planCacheStats",
    "$shardedDataDistribution",
];

#[derive(Debug)]
struct Facet {
    pipelines: Vec<(Box<str>, Stages)>,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let spec = match argument {
        ValueRef::Document(spec) if !spec.is_empty() => spec,
        _ => {
            let what = "the $facet specification must be a non-empty object";
            return refuse(40169, format!("{what}, but found: {argument}"));
        }
    };
    let mut pipelines = Vec::new();
    for elem in spec {
        let name = elem.name();
        field_path::validate_name(name)?;
        let ValueRef::Array(stages) = elem.value() else {
            let found = elem.ty().name();
            return refuse(40170, format!("arguments to $facet must be arrays, {name} is type {found}"));
        };
        if let Some(other) = stages.iter().find(|stage| stage.as_doc().is_none()) {
            let what = "elements of arrays in $facet spec must be non-empty objects";
            let found = other.ty().name();
            return refuse(40171, format!("{what}, {name} argument contained an element of type {found}"));
        }
        check_names(stages)?;
        pipelines.push((name.into(), bound(fuse(parse_stages(stages, parser)?))));
    }
    one(Facet { pipelines })
}

fn check_names(stages: RawArray<'_>) -> Result<()> {
    let names = stages.iter().filter_map(ValueRef::as_doc).filter_map(RawDoc::first).map(|first| first.name());
    for name in names {
        if NOT_INSIDE.contains(&name) {
            let message = format!("{name} is not allowed to be used within a $facet stage");
            return Err(Error::new(Code(40600), message));
        }
    }
    Ok(())
}

impl Stage for Facet {
    fn name(&self) -> &'static str {
        FACET.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Faceting { stage: self, input: Some(input), run: run.clone(), current: DocBuf::new() }))
    }

    fn needs(&self, _after: &Deps) -> Deps {
        let mut needs = Deps::default();
        self.pipelines.iter().for_each(|(_, stages)| needs.merge(&leading::needs(stages)));
        needs
    }
}

struct Faceting {
    stage: Arc<Facet>,
    /// Gone once the result has been made.
    input: Option<Box<dyn Stream>>,
    run: Run,
    current: DocBuf,
}

impl Stream for Faceting {
    fn advance(&mut self) -> Result<bool> {
        let Some(mut input) = self.input.take() else { return Ok(false) };
        let taped = Tape::record(&mut *input, &self.run)?;
        for (name, stages) in &self.stage.pipelines {
            let mut stream = string_together(stages, Box::new(Replay::new(taped.clone())?), &self.run)?;
            let mut results = ArrayBuf::new();
            while stream.advance()? {
                results.push(stream.doc());
                if self.current.len_bytes() + results.len_bytes() > self.run.limits.document_bytes_max {
                    let message = "the document constructed by $facet is larger than a document may be";
                    return Err(Error::new(Code::BSONObjectTooLarge, message));
                }
            }
            self.current.append(name, &results);
        }
        Ok(true)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }
}

/// The input, kept so that it can be read several times: in memory, beyond the limit in a file.
struct Tape {
    bytes: Vec<u8>,
    rest: Option<Mutex<Written>>,
}

impl Tape {
    fn record(input: &mut dyn Stream, run: &Run) -> Result<Arc<Tape>> {
        let mut bytes = Vec::new();
        let mut writer: Option<Writer> = None;
        while input.advance()? {
            run.context.interrupt.check()?;
            let doc = input.doc();
            if writer.is_none() && bytes.len() + doc.as_bytes().len() <= run.limits.stage_memory_bytes_max {
                bytes.extend_from_slice(doc.as_bytes());
                continue;
            }
            let Some(spill) = &run.spill else {
                let message = "Exceeded memory limit for $facet. Pass allowDiskUse:true to opt in to using the disk.";
                return Err(Error::new(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message));
            };
            let writer = match &mut writer {
                Some(writer) => writer,
                None => writer.insert(Writer::new(&**spill)?),
            };
            writer.append(&[], doc)?;
        }
        let rest = writer.map(Writer::finish).transpose()?.map(Mutex::new);
        Ok(Arc::new(Tape { bytes, rest }))
    }
}

/// One reading of the tape. Readings follow each other, so that they can share the file.
struct Replay {
    tape: Arc<Tape>,
    at: usize,
    next: usize,
    /// The current document, if it is from the file.
    from_file: Option<DocBuf>,
}

impl Replay {
    fn new(tape: Arc<Tape>) -> Result<Replay> {
        if let Some(rest) = &tape.rest {
            lock(rest)?.rewind()?;
        }
        Ok(Replay { tape, at: 0, next: 0, from_file: None })
    }
}

fn lock(rest: &Mutex<Written>) -> Result<std::sync::MutexGuard<'_, Written>> {
    rest.lock().map_err(|_| Error::internal("a reader of a temporary file has failed"))
}

impl Stream for Replay {
    fn advance(&mut self) -> Result<bool> {
        if self.next < self.tape.bytes.len() {
            self.at = self.next;
            self.next += espalier_value::document_len(&self.tape.bytes[self.at..])?;
            return Ok(true);
        }
        let Some(rest) = &self.tape.rest else { return Ok(false) };
        let mut rest = lock(rest)?;
        if !rest.advance()? {
            return Ok(false);
        }
        self.from_file = Some(DocBuf::from_raw(rest.doc()));
        Ok(true)
    }

    fn doc(&self) -> RawDoc<'_> {
        match &self.from_file {
            Some(doc) => doc.as_raw(),
            None => RawDoc::trusted(&self.tape.bytes[self.at..self.next]),
        }
    }
}
