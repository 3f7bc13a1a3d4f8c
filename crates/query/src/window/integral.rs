//! `$integral`: the area under the input over the sort field, by trapezoids between neighbouring documents.

use std::collections::VecDeque;

use espalier_value::number::Number;
use espalier_value::{Code, Error, Result, Value, ValueRef};

use super::arithmetic::{divide, subtract};
use super::removable::RemovableSum;
use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given, over_time};

pub(super) static INTEGRAL: Definition =
    Definition { name: "$integral", parse, doc: "The area under the input over the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    let (input, unit) = over_time::parse(given)?;
    let make = move || -> Box<dyn Sliding> {
        Box::new(Integral { unit, sum: RemovableSum::default(), last: None, areas: VecDeque::new(), count: 0 })
    };
    Ok(given.windowed(input, given.bounds()?, true, make))
}

struct Integral {
    unit: Option<Number>,
    sum: RemovableSum,
    /// Position and value of the document that came last.
    last: Option<(Value<'static>, Number)>,
    /// The areas between the documents of the window.
    areas: VecDeque<Number>,
    count: u64,
}

impl Integral {
    fn check(&self, item: &Item) -> Result<Number> {
        let refuse = |code, message: &str| Err(Error::new(Code(code), message));
        let number = item.value().and_then(Number::of);
        let position = item.position.or_null();
        let is_date = matches!(position, ValueRef::DateTime(_));
        match number {
            Some(number) if is_date || Number::of(position).is_some() => match (self.unit.is_some(), is_date) {
                (true, false) => refuse(5423901, "$integral with 'unit' expects the sortBy field to be a Date"),
                (false, true) => refuse(5423902, "$integral (with no 'unit') expects the sortBy field to be numeric"),
                _ => Ok(number),
            },
            _ => refuse(
                5423900,
                "The input value of $integral window function must be a vector of 2 value, the first value must be \
                 numeric or date type and the second must be numeric.",
            ),
        }
    }
}

impl Sliding for Integral {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        let value = self.check(item)?;
        if let Some((position, last)) = &self.last {
            let width = subtract(item.position.or_null(), position.or_null())?;
            let area = divide(last.add(value).mul(width), Number::Double(2.0));
            self.sum.add(area);
            self.areas.push_back(area);
        }
        self.last = Some((item.position.clone(), value));
        self.count += 1;
        Ok(())
    }

    fn remove(&mut self, _at: u64, _item: &Item) -> Result<()> {
        self.count -= 1;
        if self.count == 0 {
            self.last = None;
        }
        if let Some(area) = self.areas.pop_front() {
            self.sum.remove(area);
        }
        Ok(())
    }

    fn value(&mut self, window: &Window<'_>) -> Result<Value<'static>> {
        if !window.is_bounded() {
            // What is never given back need not be remembered.
            self.areas.clear();
        }
        if self.count == 0 {
            return Ok(Value::NULL);
        }
        let total = self.sum.total();
        Ok(self.unit.map_or(total, |unit| divide(total, unit)).to_value().into())
    }

    fn memory(&self) -> usize {
        self.areas.len() * size_of::<Number>()
    }
}
