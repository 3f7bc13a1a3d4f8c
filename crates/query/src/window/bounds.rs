//! Which documents around the current one a window holds: `{documents: [-1, "current"]}`, `{range: [-7, 0], unit: "day"}`.

use std::cmp::Ordering;

use espalier_value::number::Number;
use espalier_value::{Code, Error, RawDoc, Result, Value, ValueRef, compare};

use crate::context::Context;
use crate::expression::{Env, Expression, Scope, TimeUnit};
use crate::sort::Sort;

/// One end of a window.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    Unbounded,
    Current,
    /// So many documents after the current one.
    Documents(i64),
    /// So far from the current one in the sort field.
    Range(Number),
}

#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub lower: Bound,
    pub upper: Bound,
    /// By the values of the sort field, not by counting.
    pub is_range: bool,
    unit: Option<TimeUnit>,
    /// A range needs the sort to ascend; MongoDB says so when the first document comes.
    descends: bool,
}

impl Bounds {
    /// The whole partition.
    pub const ALL: Bounds =
        Bounds { lower: Bound::Unbounded, upper: Bound::Unbounded, is_range: false, unit: None, descends: false };

    /// From the beginning to the current document.
    pub const SO_FAR: Bounds =
        Bounds { lower: Bound::Unbounded, upper: Bound::Current, is_range: false, unit: None, descends: false };

    /// The one document that stands `offset` after the current one.
    pub fn one(offset: i64) -> Bounds {
        Bounds { lower: Bound::Documents(offset), upper: Bound::Documents(offset), ..Bounds::ALL }
    }

    pub fn is_left_unbounded(&self) -> bool {
        matches!(self.lower, Bound::Unbounded)
    }

    /// Whether an end depends on the values of the sort field.
    pub fn reads_positions(&self) -> bool {
        matches!(self.lower, Bound::Range(_)) || matches!(self.upper, Bound::Range(_))
    }

    /// Parses the `window` of a function.
    pub fn parse(window: ValueRef<'_>, sort: Option<&Sort>, scope: &Scope, context: &Context) -> Result<Bounds> {
        let refuse = |message: &str| Err(Error::failed_to_parse(message));
        let ValueRef::Document(spec) = window else { return refuse("'window' field must be an object") };
        let (documents, range, unit) = (spec.get("documents"), spec.get("range"), spec.get("unit"));
        let count = spec.count();
        if documents.is_some() && range.is_some() {
            return refuse("Window bounds can specify either 'documents' or 'unit', not both.");
        }
        if unit.is_some() && range.is_none() {
            return refuse("Window bounds can only specify 'unit' with range-based bounds.");
        }
        let sort_fields = sort.map_or(0, |sort| sort.fields().len());
        let constant = |value: ValueRef<'_>| -> Result<Option<Number>> {
            let expression = Expression::parse(value, scope)?;
            let value = expression.eval(&Env::new(RawDoc::EMPTY, context))?;
            Ok(value.as_ref().and_then(Number::of))
        };
        if let Some(given) = documents {
            if count > 1 {
                return refuse("'window' field that specifies documents cannot have other fields");
            }
            let [lower, upper] = ends("documents", given)?.map(|end| {
                end_of(end, |value| {
                    let whole = constant(value)?.and_then(Number::as_exact_i64);
                    match whole.and_then(|whole| i32::try_from(whole).ok()) {
                        Some(offset) => Ok(Bound::Documents(offset.into())),
                        None => Err(Error::failed_to_parse("Numeric document-based bounds must be an integer")),
                    }
                })
            });
            let bounds = Bounds { lower: lower?, upper: upper?, ..Bounds::ALL }.in_order()?;
            let is_all = matches!((&bounds.lower, &bounds.upper), (Bound::Unbounded, Bound::Unbounded));
            if sort_fields == 0 && !is_all {
                return Err(Error::new(Code(5339901), "Document-based bounds require a sortBy"));
            }
            return Ok(bounds);
        }
        let Some(given) = range else {
            if count == 0 {
                return Ok(Bounds::ALL);
            }
            return refuse(
                "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field",
            );
        };
        if count > 1 + usize::from(unit.is_some()) {
            return refuse("'window' field that specifies range cannot have other fields besides 'unit'");
        }
        let unit = match unit {
            None => None,
            Some(ValueRef::String(name)) => Some(time_unit(name)?),
            Some(_) => return refuse("'unit' must be a string"),
        };
        let [lower, upper] = ends("range", given)?.map(|end| {
            end_of(end, |value| {
                let Some(number) = constant(value)? else {
                    return Err(Error::failed_to_parse("Range-based bounds expression must be a number"));
                };
                if unit.is_some() && number.as_exact_i64().is_none() {
                    return Err(Error::failed_to_parse("With 'unit', range-based bounds must be an integer"));
                }
                Ok(Bound::Range(number))
            })
        });
        let bounds = Bounds { lower: lower?, upper: upper?, is_range: true, unit, descends: false }.in_order()?;
        match sort.map(Sort::fields) {
            Some([field]) => Ok(Bounds { descends: field.descending, ..bounds }),
            _ => Err(Error::new(Code(5339902), "Range-based bounds require sortBy a single field")),
        }
    }

    fn in_order(self) -> Result<Bounds> {
        let number = |bound: &Bound| match bound {
            Bound::Unbounded => None,
            Bound::Current => Some(Number::Int32(0)),
            Bound::Documents(offset) => Some(Number::Int64(*offset)),
            Bound::Range(number) => Some(*number),
        };
        match (number(&self.lower), number(&self.upper)) {
            (Some(lower), Some(upper)) if lower.compare(upper).is_gt() => {
                let message =
                    format!("Lower bound must not exceed upper bound: [{}, {}]", lower.to_value(), upper.to_value());
                Err(Error::new(Code(5339900), message))
            }
            _ => Ok(self),
        }
    }

    /// A range is over numbers, or over dates with a unit.
    pub fn check_position(&self, position: &Value<'_>) -> Result<()> {
        if self.descends {
            return Err(Error::new(Code(5429404), "Missing _sortExpr with range-based bounds"));
        }
        let found = || position.as_ref().map_or("missing", |value| value.ty().name());
        let refuse = |code, message: String| Err(Error::new(Code(code), format!("Invalid range: {message}")));
        match (self.unit, position.as_ref()) {
            (Some(_), Some(ValueRef::DateTime(_))) => Ok(()),
            (Some(_), _) => refuse(5429513, format!("Expected the sortBy field to be a Date, but it was {}", found())),
            (None, Some(ValueRef::DateTime(_))) => {
                refuse(5429413, "For windows that involve date or time ranges, a unit must be provided.".into())
            }
            (None, Some(value)) if Number::of(value).is_some() => Ok(()),
            (None, _) => refuse(5429414, format!("Expected the sortBy field to be a number, but it was {}", found())),
        }
    }

    /// How a position stands to the bound that belongs to another.
    pub fn compare(&self, position: ValueRef<'_>, bound: &Bound, of: ValueRef<'_>) -> Result<Ordering> {
        let Bound::Range(offset) = bound else { return Ok(Ordering::Equal) };
        let limit = match (of, self.unit) {
            (ValueRef::DateTime(ms), Some(unit)) => match unit.add_utc(ms, offset.to_i64_clamped()) {
                Some(ms) => ValueRef::DateTime(ms),
                None => return Err(Error::new(Code(5976500), "the bound of the window is no date")),
            },
            _ => match Number::of(of) {
                Some(number) => number.add(*offset).to_value(),
                None => of,
            },
        };
        Ok(compare(position, limit))
    }
}

/// The unit of a window or a function.
pub(super) fn time_unit(name: &str) -> Result<TimeUnit> {
    TimeUnit::parse(name).ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {name}")))
}

fn ends<'a>(name: &str, value: ValueRef<'a>) -> Result<[ValueRef<'a>; 2]> {
    if let ValueRef::Array(array) = value {
        let mut elements = array.iter();
        if let (Some(lower), Some(upper), None) = (elements.next(), elements.next(), elements.next()) {
            return Ok([lower, upper]);
        }
    }
    Err(Error::failed_to_parse(format!("Window bounds must be a 2-element array: {name}: {value}")))
}

fn end_of(value: ValueRef<'_>, number: impl Fn(ValueRef<'_>) -> Result<Bound>) -> Result<Bound> {
    match value {
        ValueRef::String("unbounded") => Ok(Bound::Unbounded),
        ValueRef::String("current") => Ok(Bound::Current),
        ValueRef::String(_) => {
            Err(Error::failed_to_parse("Window bounds must be 'unbounded', 'current', or a number."))
        }
        value => number(value),
    }
}
