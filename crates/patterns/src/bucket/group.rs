//! A `$group` on readings, answered from the figures of buckets: a bucket whose readings all match and all belong to one
//! group gives what its figures say; the readings of the others are read one by one.

use std::sync::Arc;

use espalier_query::accumulator::{Accumulator, AccumulatorSpec};
use espalier_query::expression::{Env, Steps};
use espalier_query::stage::Group;
use espalier_query::{Context, Filter, Stream};
use espalier_store::{Cursor, Find};
use espalier_value::{DocBuf, Path, RawDoc, Result, Value, ValueRef};

use super::exact;
use super::find::Readings;
use super::standing::{Ends, Standing};
use super::stats::Measure;
use super::stored::marks;
use super::{Bucket, STATS};
use crate::bson::{whole, with_value};

/// What a bucket gives to an accumulator.
#[derive(Debug)]
enum Given {
    Count,
    /// The sum under these names, with the count of numbers for an average.
    Sum {
        total: String,
        rest: String,
        count: Option<String>,
    },
    /// The smallest or greatest value under this name.
    Best(String),
    /// As many times as there are readings, what the expression gives for any of them.
    Same(Steps),
}

/// How a group is answered from figures.
#[derive(Debug)]
pub struct Lending {
    group: Arc<Group>,
    /// How the key changes with time.
    key: Steps,
    given: Vec<Given>,
    /// Greatest and smallest texts are those of another collation.
    collated: bool,
}

impl Bucket {
    /// How the group that reads a find's documents is answered from figures; `None` if it is not.
    pub(super) fn lending(&self, find: &Find) -> Option<Lending> {
        let group = find.group.clone()?;
        let changed = find.sort.is_some() || find.skip > 0 || find.limit.is_some() || find.projection.is_some();
        if changed || find.hint.is_some() {
            return None;
        }
        let key = self.steps_of(group.id())?;
        let given: Option<Vec<Given>> = group.accumulators().iter().map(|spec| self.given(spec)).collect();
        Some(Lending { key, given: given?, collated: find.context.collation.is_some(), group })
    }

    fn steps_of(&self, expression: &espalier_query::Expression) -> Option<Steps> {
        let time = self.time.as_ref().map(|time| &time.path);
        expression.steps(time, &|path| self.is_shared(path))
    }

    fn given(&self, spec: &AccumulatorSpec) -> Option<Given> {
        let figure = |path: &Path, measure| self.stats.figure(path, measure);
        match (spec.name(), spec.expression().as_field_path()) {
            ("$count", _) => return Some(Given::Count),
            (name @ ("$sum" | "$avg"), Some(path)) if !self.is_shared(path) => {
                let sum = figure(path, Measure::Sum)?;
                let count = match name {
                    "$avg" => Some(figure(path, Measure::Count)?.name.clone()),
                    _ => None,
                };
                return Some(Given::Sum { total: sum.name.clone(), rest: sum.rest.clone()?, count });
            }
            ("$min", Some(path)) if !self.is_shared(path) => {
                return Some(Given::Best(figure(path, Measure::Min)?.name.clone()));
            }
            ("$max", Some(path)) if !self.is_shared(path) => {
                return Some(Given::Best(figure(path, Measure::Max)?.name.clone()));
            }
            ("$sum" | "$avg" | "$min" | "$max" | "$first" | "$last" | "$addToSet", _) => {}
            _ => return None,
        }
        self.steps_of(spec.expression()).map(Given::Same)
    }

    /// What a bucket adds up to in the group, if its figures tell.
    fn partial(&self, lending: &Lending, stored: RawDoc<'_>, filter: &Filter, context: &Context) -> Result<Lent> {
        if !marks(stored).is_empty() {
            return Ok(Lent::Readings);
        }
        let Some(stats) = stored.get_doc(STATS) else { return Ok(Lent::Readings) };
        let Some(count) = whole(stats.get("count")).filter(|count| *count > 0) else { return Ok(Lent::Readings) };
        let mut first = DocBuf::new();
        for elem in self.by.iter().filter(|path| path.is_single()).filter_map(|path| stored.elem(path.as_str())) {
            first.append_elem(elem);
        }
        let mut last = None;
        let mut bounds = None;
        if let Some(time) = &self.time {
            let (Some(ValueRef::DateTime(start)), Some(ValueRef::DateTime(end))) =
                (stored.get(&time.start), stored.get(&time.end))
            else {
                return Ok(Lent::Readings);
            };
            last = Some(with_value(first.as_raw(), time.path.parts(), ValueRef::DateTime(end.saturating_sub(1))));
            first = with_value(first.as_raw(), time.path.parts(), ValueRef::DateTime(start));
            bounds = Some((start, end.saturating_sub(1)));
        }
        let ends = Ends { first: first.as_raw(), last: last.as_ref().unwrap_or(&first).as_raw() };
        match self.standing(filter.root(), ends, context) {
            Standing::Nothing => return Ok(Lent::Nothing),
            Standing::Some => return Ok(Lent::Readings),
            Standing::All => {}
        }
        let same = |steps: &Steps| bounds.is_none_or(|(start, last)| steps.hold(start, last));
        if !same(&lending.key) {
            return Ok(Lent::Readings);
        }
        let env = Env::new(ends.first, context);
        // What fails for all readings fails when they are read.
        let Ok(key) = lending.group.id().eval(&env) else { return Ok(Lent::Readings) };
        let mut out = DocBuf::new();
        out.append("", key.or_null());
        for (given, spec) in lending.given.iter().zip(lending.group.accumulators()) {
            let told = match given {
                Given::Count => {
                    out.append("", count);
                    Some(())
                }
                Given::Sum { total, rest, count } => {
                    let count = count.as_ref().map(|name| whole(stats.get(name)).unwrap_or(-1));
                    let mut partial = DocBuf::new();
                    let told = exact::partial(stats.get(total).or_null(), stats.get(rest), count, &mut partial)
                        .filter(|()| count.is_none_or(|count| count >= 0));
                    out.append("", &partial);
                    told
                }
                Given::Best(name) => {
                    stats.get(name).filter(|value| !lending.collated || !has_text(*value)).map(|value| {
                        out.append("", value);
                    })
                }
                Given::Same(steps) if same(steps) => match spec.expression().eval(&env) {
                    Ok(value) => {
                        out.append("", repeated(spec, &value, count, context)?.or_null());
                        Some(())
                    }
                    Err(_) => None,
                },
                Given::Same(_) => None,
            };
            if told.is_none() {
                return Ok(Lent::Readings);
            }
        }
        Ok(Lent::Partial(out))
    }
}

/// What a bucket gives.
enum Lent {
    Partial(DocBuf),
    /// No reading matches.
    Nothing,
    /// Its readings tell.
    Readings,
}

trait OrNull<'a> {
    fn or_null(self) -> ValueRef<'a>;
}

impl<'a> OrNull<'a> for Option<ValueRef<'a>> {
    fn or_null(self) -> ValueRef<'a> {
        self.unwrap_or(ValueRef::Null)
    }
}

/// The partial result of an accumulator that is given one value many times.
fn repeated(spec: &AccumulatorSpec, value: &Value<'_>, count: i64, context: &Context) -> Result<Value<'static>> {
    let mut state = spec.make(RawDoc::EMPTY, context)?;
    let adds = matches!(spec.name(), "$sum" | "$avg");
    if let (true, Some(ValueRef::Int32(one))) = (spec.name() == "$sum", value.as_ref()) {
        let mut sum = DocBuf::new();
        if exact::partial(ValueRef::Int64(i64::from(one) * count), Some(ValueRef::Int32(0)), None, &mut sum).is_some() {
            return Ok(Value::document(sum));
        }
    }
    for _ in 0..if adds { count } else { 1 } {
        state.push(value.as_ref())?;
    }
    Ok(state.partial())
}

/// Whether a collation has a say in how it compares.
fn has_text(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::String(_) | ValueRef::Symbol(_) | ValueRef::Document(_) | ValueRef::Array(_))
}

/// Readings that match or, if the reader can use it, what whole buckets add up to.
pub struct Grouped {
    readings: Readings,
    filter: Arc<Filter>,
    context: Arc<Context>,
    lending: Lending,
    /// The reader takes partial results.
    lends: bool,
    partial: Option<DocBuf>,
    /// Buckets that gave a partial result, and those whose readings were read.
    pub whole: u64,
    pub edge: u64,
}

impl Grouped {
    pub fn new(readings: Readings, find: &Find, lending: Lending) -> Grouped {
        Grouped {
            readings,
            filter: find.filter.clone(),
            context: find.context.clone(),
            lending,
            lends: false,
            partial: None,
            whole: 0,
            edge: 0,
        }
    }

    /// Goes on to the next bucket; false at the end.
    fn open(&mut self) -> Result<bool> {
        while self.readings.open()? {
            self.context.interrupt.check()?;
            if self.lends {
                let stored = self.readings.stored();
                match self.readings.bucket().partial(&self.lending, stored, &self.filter, &self.context)? {
                    Lent::Partial(partial) => self.partial = Some(partial),
                    Lent::Nothing => {
                        self.readings.skip();
                        continue;
                    }
                    Lent::Readings => {}
                }
            }
            if self.partial.is_some() {
                self.whole += 1;
                self.readings.skip();
            } else {
                self.edge += 1;
            }
            return Ok(true);
        }
        Ok(false)
    }
}

impl Stream for Grouped {
    fn advance(&mut self) -> Result<bool> {
        self.partial = None;
        loop {
            if !self.readings.next()? {
                if !self.open()? {
                    return Ok(false);
                }
                if self.partial.is_some() {
                    return Ok(true);
                }
                continue;
            }
            self.context.interrupt.check()?;
            if self.filter.is_empty() || self.filter.matches(self.readings.doc(), &self.context)? {
                return Ok(true);
            }
        }
    }

    fn doc(&self) -> RawDoc<'_> {
        self.readings.doc()
    }

    fn lend_partials(&mut self) -> bool {
        self.lends = true;
        true
    }

    fn partial(&self) -> Option<RawDoc<'_>> {
        self.partial.as_ref().map(DocBuf::as_raw)
    }
}

impl Cursor for Grouped {
    fn keys_examined(&self) -> u64 {
        self.readings.keys_examined()
    }

    fn docs_examined(&self) -> u64 {
        self.readings.docs_examined()
    }

    fn plan_summary(&self) -> String {
        self.readings.plan_summary()
    }
}
