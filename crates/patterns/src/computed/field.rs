//! One computed field: what it takes of each document of the source, and how its value follows from what came and went.

use std::collections::BTreeMap;
use std::sync::Arc;

use espalier_query::sort::Sort;
use espalier_query::{Context, Expression};
use espalier_value::number::Number;
use espalier_value::{DocBuf, Path, RawDoc, Result, Value, ValueRef, compare, doc};

use super::eval;
use super::sum::Sum;
use crate::bson::{value_at, whole};

#[derive(Debug)]
pub struct Field {
    /// Where it is kept.
    pub path: Path,
    pub measure: Measure,
    /// What it takes of each document.
    pub expression: Expression,
    /// Where the sum is kept that it is made of.
    pub sums: Option<Path>,
    /// Rounds `$v`.
    pub round: Option<Expression>,
    pub sort: Option<Arc<Sort>>,
    /// The sort's fields, each with whether it descends.
    pub sorted_by: Vec<(Path, bool)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    CountBy,
    First,
    Last,
}

pub const MEASURES: [(&str, Measure); 8] = [
    ("$count", Measure::Count),
    ("$sum", Measure::Sum),
    ("$avg", Measure::Avg),
    ("$min", Measure::Min),
    ("$max", Measure::Max),
    ("$countBy", Measure::CountBy),
    ("$first", Measure::First),
    ("$last", Measure::Last),
];

/// What has been counted so far.
#[derive(Debug)]
pub enum State {
    Count(i64),
    Sum(Sum),
    /// The extreme (true: the largest); missing if there is none.
    Extreme(Value<'static>, bool),
    By(BTreeMap<Label, i64>),
    /// The first in order; missing if there is none.
    One(Value<'static>),
}

impl Field {
    /// What it takes of a document.
    pub fn value(&self, doc: RawDoc<'_>, context: &Context) -> Result<Value<'static>> {
        match self.measure {
            Measure::Count => Ok(Value::NULL),
            _ => eval(&self.expression, doc, context),
        }
    }

    pub fn empty(&self) -> State {
        match self.measure {
            Measure::Count => State::Count(0),
            Measure::Sum | Measure::Avg => State::Sum(Sum::default()),
            Measure::Min => State::Extreme(Value::default(), false),
            Measure::Max => State::Extreme(Value::default(), true),
            Measure::CountBy => State::By(BTreeMap::new()),
            Measure::First | Measure::Last => State::One(Value::default()),
        }
    }

    /// What a document has; `None` if it has nothing that can be gone on with.
    pub fn read(&self, owner: RawDoc<'_>) -> Option<State> {
        let value = value_at(owner, self.path.parts())?;
        match self.measure {
            Measure::Count => whole(Some(value)).map(State::Count),
            Measure::Sum | Measure::Avg => match value_at(owner, self.sums.as_ref()?.parts())? {
                ValueRef::Document(sum) => Sum::from_document(sum).map(State::Sum),
                _ => None,
            },
            Measure::Min | Measure::Max => {
                let value = if matches!(value, ValueRef::Null) { Value::default() } else { Value::own(value) };
                Some(State::Extreme(value, self.measure == Measure::Max))
            }
            Measure::CountBy => match value {
                ValueRef::Document(counts) => {
                    let read =
                        |elem: espalier_value::Elem<'_>| Some((Label::new(elem.name()), whole(Some(elem.value()))?));
                    counts.iter().map(read).collect::<Option<_>>().map(State::By)
                }
                _ => None,
            },
            // Which document is first, only the source knows.
            Measure::First | Measure::Last => None,
        }
    }

    /// Puts the value into a patch.
    pub fn write(&self, state: State, patch: &mut crate::derive::Patch, context: &Context) -> Result<()> {
        let value = match state {
            State::Count(count) => Number::narrowest(count).to_value().into(),
            State::Sum(sum) => {
                let value = if self.measure == Measure::Sum { sum.total() } else { sum.mean() };
                patch.put(self.path.clone(), self.rounded(value, context)?);
                if let Some(path) = &self.sums {
                    patch.put(path.clone(), Value::document(sum.to_document()));
                }
                return Ok(());
            }
            State::Extreme(value, _) | State::One(value) => Value::own(value.or_null()),
            State::By(counts) => {
                let mut doc = DocBuf::new();
                for (label, count) in &counts {
                    doc.append(&label.text, Number::narrowest(*count).to_value());
                }
                Value::document(doc)
            }
        };
        patch.put(self.path.clone(), value);
        Ok(())
    }

    fn rounded(&self, value: Value<'static>, context: &Context) -> Result<Value<'static>> {
        let Some(round) = &self.round else { return Ok(value) };
        let doc = doc! { "v": value.or_null() };
        eval(round, doc.as_raw(), context)
    }

    /// The order in which the first document that counts decides.
    pub fn order(&self) -> Option<Arc<Sort>> {
        self.sort.clone()
    }

    /// What an index behind the link's fields is to have so that the deciding document is found at once.
    pub fn behind(&self) -> Option<Vec<(Path, bool)>> {
        (!self.sorted_by.is_empty()).then(|| self.sorted_by.clone())
    }
}

impl State {
    /// Takes the value of one more document.
    pub fn add(&mut self, value: Option<ValueRef<'_>>) {
        match self {
            State::Count(count) => *count += 1,
            State::Sum(sum) => {
                if let Some(number) = value.and_then(Number::of) {
                    sum.add(number);
                }
            }
            State::Extreme(extreme, largest) => {
                let Some(value) = counted(value) else { return };
                let better = extreme.as_ref().is_none_or(|now| {
                    let order = compare(value, now);
                    if *largest { order.is_gt() } else { order.is_lt() }
                });
                if better {
                    *extreme = Value::own(value);
                }
            }
            State::By(counts) => {
                if let Some(label) = Label::of(value) {
                    *counts.entry(label).or_default() += 1;
                }
            }
            State::One(_) => {}
        }
    }

    /// The state after a document came, or went; `None` if that cannot be told from here.
    pub fn moved(mut self, value: Option<ValueRef<'_>>, came: bool) -> Option<State> {
        if came {
            self.add(value);
            return Some(self);
        }
        let still = match &mut self {
            State::Count(count) => {
                *count -= 1;
                *count >= 0
            }
            State::Sum(sum) => value.and_then(Number::of).is_none_or(|number| sum.take(number)),
            // The extreme itself went, or one that should have been it.
            State::Extreme(extreme, largest) => counted(value).is_none_or(|value| {
                extreme.as_ref().is_some_and(|now| {
                    let order = compare(value, now);
                    if *largest { order.is_lt() } else { order.is_gt() }
                })
            }),
            State::By(counts) => Label::of(value).is_none_or(|label| match counts.get_mut(&label) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    true
                }
                Some(1) => {
                    counts.remove(&label);
                    true
                }
                _ => false,
            }),
            State::One(_) => false,
        };
        still.then_some(self)
    }

    /// True if it cannot become more than this: the extreme that was there before some went and others came.
    pub fn reaches(&self, bound: Option<&State>) -> bool {
        match (self, bound) {
            (State::Extreme(now, _), Some(State::Extreme(bound, _))) => match (now.as_ref(), bound.as_ref()) {
                (Some(now), Some(bound)) => compare(now, bound).is_eq(),
                _ => false,
            },
            _ => false,
        }
    }

    /// Takes the value of the next document in order; true if it decides.
    pub fn settle(&mut self, value: Option<ValueRef<'_>>) -> bool {
        match self {
            State::One(one) => {
                *one = Value::own(value.unwrap_or(ValueRef::Null));
                true
            }
            other => {
                other.add(value);
                false
            }
        }
    }
}

/// Null and nothing have no part in a minimum or maximum.
fn counted(value: Option<ValueRef<'_>>) -> Option<ValueRef<'_>> {
    value.filter(|value| !matches!(value, ValueRef::Null | ValueRef::Undefined))
}

/// The name under which a value is counted. Numbers come first, in their order.
#[derive(Clone, Debug)]
pub struct Label {
    number: Option<f64>,
    text: String,
}

impl Label {
    fn new(text: &str) -> Label {
        Label { number: text.parse().ok().filter(|x: &f64| !x.is_nan()), text: text.to_string() }
    }

    /// `None` for what has no such name: nothing, null, lists, documents, binaries.
    fn of(value: Option<ValueRef<'_>>) -> Option<Label> {
        let value = value?;
        let text = match value {
            ValueRef::String(text) => text.to_string(),
            ValueRef::Bool(_) | ValueRef::Int32(_) => value.to_string(),
            ValueRef::Int64(x) => x.to_string(),
            // 4.0 and 4 are one value.
            ValueRef::Double(x) if x.fract() == 0.0 && x.abs() < 1e15 => (x as i64).to_string(),
            ValueRef::Double(x) => x.to_string(),
            ValueRef::Decimal(x) => match Number::Decimal(x).as_exact_i64() {
                Some(whole) => whole.to_string(),
                None => x.to_string(),
            },
            ValueRef::ObjectId(_) | ValueRef::DateTime(_) => plain_text(value)?,
            _ => return None,
        };
        (!text.contains('\0')).then(|| Label::new(&text))
    }
}

/// As `$toString` has it.
fn plain_text(value: ValueRef<'_>) -> Option<String> {
    let convert = doc! { "$toString": &doc! { "$literal": value } };
    let convert = Expression::parse(ValueRef::Document(convert.as_raw()), &super::scope()).ok()?;
    let text = eval(&convert, RawDoc::EMPTY, &Context::default()).ok()?;
    match text.or_null() {
        ValueRef::String(text) => Some(text.to_string()),
        _ => None,
    }
}

impl Ord for Label {
    fn cmp(&self, other: &Label) -> std::cmp::Ordering {
        let by_number = match (self.number, other.number) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => std::cmp::Ordering::Equal,
        };
        by_number.then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Label) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Label) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Label {}
