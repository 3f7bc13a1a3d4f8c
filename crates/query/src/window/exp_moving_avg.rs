//! `$expMovingAvg`: a mean in which each value counts less than the next. Computed in decimals, as MongoDB does; given
//! as a double until a decimal comes.

use espalier_value::number::Number;
use espalier_value::{Decimal128, Error, Result, Value, ValueRef};

use super::bounds::Bounds;
use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given};

pub(super) static EXP_MOVING_AVG: Definition =
    Definition { name: "$expMovingAvg", parse, doc: "A mean in which each value counts less than the next." };

const FIELDS: &str = "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field \
                      or an 'alpha' field";

fn parse(given: &Given<'_>) -> Result<Function> {
    let refuse = |message: String| Err(Error::failed_to_parse(message));
    let spec = match given.argument {
        ValueRef::Document(spec) if given.spec.count() == 1 => spec,
        _ => return refuse("$expMovingAvg must have exactly one argument that is an object".into()),
    };
    if given.sort.is_none() {
        return refuse("$expMovingAvg requires an explicit 'sortBy'".into());
    }
    let (Some(input), 2) = (spec.get("input"), spec.count()) else { return refuse(FIELDS.into()) };
    let alpha = if let Some(n) = spec.get("N") {
        let Some(number) = Number::of(n) else {
            return refuse(format!("'N' field must be an integer, but found type {}", n.ty().name()));
        };
        match number.as_exact_i64() {
            None => {
                let hint = "To use a non-integer, use the 'alpha' argument instead";
                return refuse(format!("'N' field must be an integer, but found  N: {n}. {hint}"));
            }
            Some(n) if n <= 0 => return refuse(format!("'N' must be greater than zero. Got {n}")),
            Some(n) => Decimal128::from_i64(2).div(Decimal128::from_i64(n).add(Decimal128::ONE)),
        }
    } else if let Some(alpha) = spec.get("alpha") {
        let Some(number) = Number::of(alpha) else { return refuse("'alpha' must be a number".into()) };
        if number.compare(Number::Int32(0)).is_le() || number.compare(Number::Int32(1)).is_ge() {
            return refuse(format!("'alpha' must be between 0 and 1 (exclusive), found alpha: {alpha}"));
        }
        number.to_decimal()
    } else {
        return refuse(FIELDS.into());
    };
    let make = move || -> Box<dyn Sliding> { Box::new(Average { alpha, current: None, is_decimal: false }) };
    Ok(given.windowed(given.expression(input)?, Bounds::SO_FAR, false, make))
}

struct Average {
    alpha: Decimal128,
    current: Option<Decimal128>,
    is_decimal: bool,
}

impl Sliding for Average {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        let Some(number) = item.value().and_then(Number::of) else { return Ok(()) };
        self.is_decimal |= matches!(number, Number::Decimal(_));
        let value = number.to_decimal();
        self.current = Some(match self.current {
            None => value,
            Some(last) => value.mul(self.alpha).add(last.mul(Decimal128::ONE.sub(self.alpha))),
        });
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        Ok(match self.current {
            None => Value::NULL,
            Some(current) if self.is_decimal => current.into(),
            Some(current) => current.to_f64().into(),
        })
    }
}
