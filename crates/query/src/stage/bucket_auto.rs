//! `$bucketAuto` groups documents into a number of ranges of about equal size.

use std::sync::Arc;

use espalier_value::number::Number;
use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, Value, ValueRef};

use super::bucket::{default_output, is_expression, parse_output};
use super::granularity::Granularity;
use super::sort_input::SortInput;
use super::sorter::{Sorted, Sorter};
use super::{Definition, Parse, Parser, Run, Stage, Stages, one};
use crate::accumulator::{Accumulator, AccumulatorSpec, State};
use crate::expression::{Deps, Env, Expression};
use crate::stream::Stream;

pub(super) static BUCKET_AUTO: Definition = Definition {
    name: "$bucketAuto",
    parse: Parse::Stage(parse),
    doc: "Groups documents into a number of ranges of about equal size.",
};

#[derive(Debug)]
struct BucketAuto {
    group_by: Expression,
    buckets: u64,
    fields: Vec<(Box<str>, AccumulatorSpec)>,
    granularity: Option<Granularity>,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let ValueRef::Document(spec) = argument else {
        let found = argument.ty().name();
        return refuse(40240, format!("The argument to $bucketAuto must be an object, but found type: {found}"));
    };
    let (mut group_by, mut buckets, mut fields, mut granularity) = (None, None, None, None);
    for elem in spec {
        let value = elem.value();
        let found = value.ty().name();
        match elem.name() {
            "groupBy" => {
                if !is_expression(value) {
                    let what = "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression \
                                object";
                    return refuse(40239, format!("{what}, but found: {value}"));
                }
                group_by = Some(Expression::parse(value, parser.scope)?);
            }
            "buckets" => {
                let Some(number) = Number::of(value) else {
                    let what = "The $bucketAuto 'buckets' field must be a numeric value";
                    return refuse(40241, format!("{what}, but found type: {found}"));
                };
                let Some(count) = number.as_exact_i64().and_then(|count| i32::try_from(count).ok()) else {
                    let what = "The $bucketAuto 'buckets' field must be representable as a 32-bit integer";
                    return refuse(40242, format!("{what}, but found {value}"));
                };
                match u64::try_from(count) {
                    Ok(count @ 1..) => buckets = Some(count),
                    _ => {
                        let what = "The $bucketAuto 'buckets' field must be greater than 0";
                        return refuse(40243, format!("{what}, but found: {count}"));
                    }
                }
            }
            "output" => fields = Some(parse_output(value, parser.scope, BUCKET_AUTO.name, 40244)?),
            "granularity" => match value {
                ValueRef::String(name) => granularity = Some(Granularity::named(name)?),
                _ => {
                    let what = "The $bucketAuto 'granularity' field must be a string";
                    return refuse(40261, format!("{what}, but found type: {found}"));
                }
            },
            other => return refuse(40245, format!("Unrecognized option to $bucketAuto: {other}")),
        }
    }
    let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
        return refuse(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified".into());
    };
    // Unlike in `$bucket`, an empty output counts too.
    let fields = match fields.filter(|fields: &Vec<_>| !fields.is_empty()) {
        Some(fields) => fields,
        None => default_output(parser.scope)?,
    };
    one(BucketAuto { group_by, buckets, fields, granularity })
}

impl Stage for BucketAuto {
    fn name(&self) -> &'static str {
        BUCKET_AUTO.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        let phase = Phase::Unread(input);
        Ok(Box::new(Bucketing { stage: self, run: run.clone(), phase, current: DocBuf::new() }))
    }

    fn needs(&self, _after: &Deps) -> Deps {
        let mut needs = self.group_by.dependencies();
        self.fields.iter().for_each(|(_, spec)| needs.merge(&spec.expression().dependencies()));
        needs
    }
}

struct Bucketing {
    stage: Arc<BucketAuto>,
    run: Run,
    phase: Phase,
    current: DocBuf,
}

enum Phase {
    Unread(Box<dyn Stream>),
    Reading(Reading),
}

struct Reading {
    sorted: Sorted,
    /// How many documents a bucket gets at least.
    size: u64,
    /// Buckets to make, this one included.
    left: u64,
    /// The sorted documents stand at one that is in no bucket yet.
    pending: bool,
    /// Where the last bucket ended, if bounds are rounded.
    end: Option<Number>,
}

impl Stream for Bucketing {
    fn advance(&mut self) -> Result<bool> {
        if let Phase::Unread(input) = &mut self.phase {
            self.phase = Phase::Reading(self.stage.sort(&mut **input, &self.run)?);
        }
        match &mut self.phase {
            Phase::Reading(reading) => self.stage.next(reading, &self.run, &mut self.current),
            Phase::Unread(_) => Ok(false),
        }
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }
}

impl BucketAuto {
    fn sort(self: &Arc<Self>, input: &mut dyn Stream, run: &Run) -> Result<Reading> {
        let mut sorter = Sorter::new("$bucketAuto", None, run);
        let (stage, context) = (Arc::clone(self), Arc::clone(&run.context));
        let key = move |input: &dyn Stream, _: Option<&[u8]>, key: &mut Vec<u8>| {
            context.collator().encode(key, stage.group_by.eval(&Env::new(input.doc(), &context))?.or_null());
            Ok(true)
        };
        let needs = self.needs(&Deps::whole());
        let fields = needs.paths().map(|paths| paths.map(|path| Path::new(path).first().into()).collect());
        let count = SortInput { key, limit: None, fields }.take_in(input, &mut sorter, run)?;
        let size = ((count as f64 / self.buckets as f64).round() as u64).max(1);
        let mut sorted = sorter.finish()?;
        let pending = sorted.advance()?;
        Ok(Reading { sorted, size, left: self.buckets, pending, end: None })
    }

    /// Fills the next bucket: up to the size, then with all that equal its last value; the last takes the rest.
    fn next(&self, reading: &mut Reading, run: &Run, out: &mut DocBuf) -> Result<bool> {
        if !reading.pending {
            return Ok(false);
        }
        let mut states: Vec<State> =
            self.fields.iter().map(|(_, spec)| spec.make(RawDoc::EMPTY, &run.context)).collect::<Result<_>>()?;
        let is_last = reading.left == 1;
        reading.left -= 1;
        let min = self.value(reading.sorted.doc(), run)?;
        let mut max = min.clone();
        let mut last = Vec::new();
        let mut taken: u64 = 0;
        // A rounded end takes in what lies below it.
        let mut end: Option<(Number, Vec<u8>)> = None;
        while reading.pending {
            let mut belongs = is_last || taken < reading.size;
            if !belongs {
                belongs = match (self.granularity, &end) {
                    (None, _) => reading.sorted.key() == last,
                    (Some(_), Some((_, key))) => reading.sorted.key() < &key[..],
                    (Some(granularity), None) => {
                        let rounded = granularity.round_up(max.or_null())?;
                        let key = espalier_value::key::of(rounded.to_value());
                        let below = reading.sorted.key() < &key[..];
                        end = Some((rounded, key));
                        below
                    }
                };
            }
            if !belongs {
                break;
            }
            run.context.interrupt.check()?;
            let doc = reading.sorted.doc();
            let env = Env::new(doc, &run.context);
            for (state, (_, spec)) in states.iter_mut().zip(&self.fields) {
                // What would fail for a document that is not looked at does not.
                if !state.is_full() {
                    state.push(spec.expression().eval(&env)?.as_ref())?;
                }
            }
            drop(env);
            // Values with one key are written alike, except under a collation.
            if reading.sorted.key() != last || run.context.collation.is_some() {
                max = self.value(doc, run)?;
                last.clear();
                last.extend_from_slice(reading.sorted.key());
            }
            taken += 1;
            reading.pending = reading.sorted.advance()?;
        }
        // Ranges touch: one ends where the next begins.
        let mut min = min;
        if let Some(granularity) = self.granularity {
            let from = match reading.end {
                Some(end) => end,
                None => granularity.round_down(min.or_null())?,
            };
            let to = match end {
                // Zero is in no series: the next bucket may begin as high as its first value allows.
                Some((end, _)) if end.is_zero() && reading.pending => {
                    granularity.round_down(self.value(reading.sorted.doc(), run)?.or_null())?
                }
                Some((end, _)) => end,
                None => granularity.round_up(max.or_null())?,
            };
            reading.end = Some(to);
            (min, max) = (from.to_value().into(), to.to_value().into());
        } else if reading.pending {
            max = self.value(reading.sorted.doc(), run)?;
        }
        out.clear();
        out.append_doc("_id", |id| {
            id.append("min", min.or_null()).append("max", max.or_null());
        });
        for (state, (name, _)) in states.iter_mut().zip(&self.fields) {
            out.append(name, state.finish().or_null());
        }
        Ok(true)
    }

    fn value(&self, doc: RawDoc<'_>, run: &Run) -> Result<Value<'static>> {
        Ok(self.group_by.eval(&Env::new(doc, &run.context))?.into_owned())
    }
}
