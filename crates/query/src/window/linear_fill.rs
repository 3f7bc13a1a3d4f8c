//! `$linearFill`: null and missing take the value on the straight line between the neighbours that have one.

use std::collections::VecDeque;

use espalier_value::number::Number;
use espalier_value::{Code, Error, Result, Value, ValueRef, compare};

use super::arithmetic::{divide, subtract};
use super::runner::Runner;
use super::{Definition, Function, Given};
use crate::context::Context;

pub(super) static LINEAR_FILL: Definition = Definition {
    name: "$linearFill",
    parse,
    doc: "Null and missing take the value on the straight line between the neighbours that have one.",
};

fn parse(given: &Given<'_>) -> Result<Function> {
    given.no_window()?;
    if given.sort.map_or(0, |sort| sort.fields().len()) != 1 {
        let message = "$linearFill must be specified with a top level sortBy expression with exactly one element";
        return Err(Error::new(Code(605001), message));
    }
    let input = given.expression(given.argument)?;
    let start = |_: &Context| -> Result<Box<dyn Runner>> { Ok(Box::new(LinearFill::default())) };
    Ok(Function { name: given.name, input, start: Box::new(start) })
}

#[derive(Default)]
struct LinearFill {
    /// The last document that had a value.
    left: Option<(Value<'static>, Number)>,
    /// Where the document stood that came last.
    last_position: Option<Value<'static>>,
    /// Positions of documents that wait for the next value.
    waiting: VecDeque<Value<'static>>,
    /// Values that are known.
    known: VecDeque<Value<'static>>,
}

impl LinearFill {
    /// Fills the gap up to a document that has a value.
    fn fill(&mut self, position: ValueRef<'_>, value: Number) -> Result<()> {
        let Some((from, start)) = &self.left else { return Ok(()) };
        if self.waiting.is_empty() {
            return Ok(());
        }
        let run = width(position, from.or_null())?;
        let slope = divide(value.sub(*start), run);
        while let Some(at) = self.waiting.pop_front() {
            let filled = slope.mul(width(at.or_null(), from.or_null())?).add(*start);
            self.known.push_back(filled.to_value().into());
        }
        Ok(())
    }
}

fn width(to: ValueRef<'_>, from: ValueRef<'_>) -> Result<Number> {
    let is_date = |value: ValueRef<'_>| matches!(value, ValueRef::DateTime(_));
    if is_date(to) != is_date(from) {
        let message = format!("$linearFill cannot measure from {} to {}", from.ty().name(), to.ty().name());
        return Err(Error::type_mismatch(message));
    }
    subtract(to, from)
}

impl Runner for LinearFill {
    fn push(&mut self, position: &Value<'_>, value: Value<'_>) -> Result<()> {
        let found = |value: &Value<'_>| value.as_ref().map_or("missing", |value| value.ty().name()).to_owned();
        let place = position.or_null();
        if !matches!(place, ValueRef::DateTime(_)) && Number::of(place).is_none() {
            let what = "Value of the sortBy field must be numeric or a date, but found";
            return Err(Error::type_mismatch(format!("{what} {}", found(position))));
        }
        let number = value.as_ref().and_then(Number::of);
        if number.is_none() && !value.is_nullish() {
            let what = "Value to be filled must be numeric or nullish, but found";
            return Err(Error::type_mismatch(format!("{what} {}", found(&value))));
        }
        if self.last_position.as_ref().is_some_and(|last| compare(last.or_null(), place).is_eq()) {
            return Err(Error::new(Code(6050106), "There can be no repeated values in the sort field"));
        }
        let position = position.clone().into_owned();
        self.last_position = Some(position.clone());
        match number {
            Some(number) => {
                self.fill(position.or_null(), number)?;
                self.known.push_back(number.to_value().into());
                self.left = Some((position, number));
            }
            None if self.left.is_none() => self.known.push_back(Value::NULL),
            None => self.waiting.push_back(position),
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.known.extend(self.waiting.drain(..).map(|_| Value::NULL));
        Ok(())
    }

    fn is_ready(&self) -> bool {
        !self.known.is_empty()
    }

    fn next(&mut self) -> Result<Value<'static>> {
        Ok(self.known.pop_front().unwrap_or(Value::NULL))
    }

    fn memory(&self) -> usize {
        (self.waiting.len() + self.known.len()) * size_of::<Value<'static>>()
    }
}
