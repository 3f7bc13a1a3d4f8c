//! `$derivative`: how fast the input changes from the first to the last document of the window, per unit of the sort
//! field. Null if the two stand at the same place.

use espalier_value::number::Number;
use espalier_value::{Code, Error, Result, Value, ValueRef};

use super::arithmetic::{divide, subtract};
use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given, over_time};

pub(super) static DERIVATIVE: Definition =
    Definition { name: "$derivative", parse, doc: "How fast the input changes over the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    let (input, unit) = over_time::parse(given)?;
    if given.spec.get("window").is_none() {
        return Err(Error::failed_to_parse("$derivative requires explicit window bounds"));
    }
    let make = move || -> Box<dyn Sliding> { Box::new(Derivative { unit, first: None, last: None }) };
    Ok(given.windowed(input, given.bounds()?, true, make))
}

struct Derivative {
    unit: Option<Number>,
    /// Of a window without a lower bound.
    first: Option<Item>,
    last: Option<Item>,
}

impl Derivative {
    fn check(&self, item: &Item) -> Result<()> {
        let refuse = |code, message: &str| Err(Error::new(Code(code), format!("$derivative {message}")));
        let is_date = matches!(item.position.as_ref(), Some(ValueRef::DateTime(_)));
        if item.value.is_nullish() {
            refuse(5624903, "input must not be null or missing")
        } else if self.unit.is_some() {
            if is_date { Ok(()) } else { refuse(5624900, "with 'unit' expects the sortBy field to be a Date") }
        } else if is_date {
            refuse(5624901, "where the sortBy is a Date requires an 'unit'")
        } else if item.position.as_ref().and_then(Number::of).is_none() {
            refuse(5624902, "(with no 'unit') expects the sortBy field to be numeric")
        } else {
            Ok(())
        }
    }

    fn between(&self, first: &Item, last: &Item) -> Result<Value<'static>> {
        self.check(first)?;
        self.check(last)?;
        let run = subtract(last.position.or_null(), first.position.or_null())?;
        if run.is_zero() {
            return Ok(Value::NULL);
        }
        let slope = divide(subtract(last.value.or_null(), first.value.or_null())?, run);
        Ok(self.unit.map_or(slope, |unit| slope.mul(unit)).to_value().into())
    }
}

fn copy(item: &Item) -> Item {
    Item { position: item.position.clone(), value: item.value.clone() }
}

impl Sliding for Derivative {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        if self.first.is_none() {
            self.first = Some(copy(item));
        }
        self.last = Some(copy(item));
        Ok(())
    }

    fn value(&mut self, window: &Window<'_>) -> Result<Value<'static>> {
        if let (Some(first), Some(last)) = (window.first(), window.last()) {
            return self.between(first, last);
        }
        match (&self.first, &self.last) {
            (Some(first), Some(last)) if !window.is_bounded() => self.between(first, last),
            _ => Ok(Value::NULL),
        }
    }
}
