//! The values of a densified field, and going from one to the next.

use espalier_value::number::Number;
use espalier_value::{Code, Error, Result, Value, ValueRef, compare};

use crate::expression::TimeUnit;

/// A number or a date.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scalar {
    Number(Number),
    Date(i64),
}

impl Scalar {
    pub fn of(value: ValueRef<'_>) -> Option<Scalar> {
        match value {
            ValueRef::DateTime(ms) => Some(Scalar::Date(ms)),
            value => Number::of(value).map(Scalar::Number),
        }
    }

    pub fn value(self) -> ValueRef<'static> {
        match self {
            Scalar::Number(number) => number.to_value(),
            Scalar::Date(ms) => ValueRef::DateTime(ms),
        }
    }

    pub fn compare(self, other: Scalar) -> std::cmp::Ordering {
        compare(self.value(), other.value())
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.compare(*other).is_eq()
    }
}

/// How far one value is from the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub amount: Number,
    /// Of dates.
    pub unit: Option<TimeUnit>,
}

impl Step {
    pub fn after(self, scalar: Scalar) -> Result<Scalar> {
        self.times(scalar, 1)
    }

    /// Where a range begins. MongoDB goes one step back and forth, which shows where months differ in length.
    pub fn start(self, lower: Scalar) -> Result<Scalar> {
        match lower {
            Scalar::Number(_) => Ok(lower),
            Scalar::Date(_) => self.after(self.times(lower, -1)?),
        }
    }

    fn times(self, scalar: Scalar, sign: i64) -> Result<Scalar> {
        match (scalar, self.unit) {
            (Scalar::Number(number), _) => Ok(Scalar::Number(number.add(self.amount))),
            (Scalar::Date(ms), Some(unit)) => {
                let amount = self.amount.to_i64_clamped().saturating_mul(sign);
                unit.add_utc(ms, amount)
                    .map(Scalar::Date)
                    .ok_or_else(|| Error::new(Code(5976500), "a step of $densify leads beyond what a date can hold"))
            }
            (Scalar::Date(_), None) => Err(Error::internal("a date was stepped from without a unit")),
        }
    }

    /// The value of a document in the field; null and missing are none.
    pub fn read(self, value: &Value<'_>) -> Result<Option<Scalar>> {
        if value.is_nullish() {
            return Ok(None);
        }
        let refuse = |code, message: &str| Err(Error::new(Code(code), message));
        match (value.as_ref().and_then(Scalar::of), self.unit) {
            (None, _) => refuse(5733201, "Densify field type must be numeric or a date"),
            (Some(Scalar::Date(_)), None) => {
                refuse(6053600, "Encountered date densify value in collection when step does not have a date unit.")
            }
            (Some(Scalar::Number(_)), Some(_)) => {
                refuse(6053600, "Encountered numeric densify value in collection when step has a date unit.")
            }
            (scalar, _) => Ok(scalar),
        }
    }
}
