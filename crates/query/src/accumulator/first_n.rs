//! `$firstN`: the values of the first n documents, in the order they come; a missing value is null.

use std::collections::VecDeque;

use espalier_value::{ArrayBuf, Result, Value, ValueRef};

use super::definition::{Definition, Given, Parse};
use super::ranked::parse_n;
use super::{Accumulator, AccumulatorSpec, State, limited};
use crate::expression::Scope;

pub(super) static FIRST_N: Definition = Definition {
    name: "$firstN",
    parse: Parse::Special(parse),
    doc: "The values of the first n documents, in the order they come.",
};

fn parse(argument: ValueRef<'_>, scope: &Scope) -> Result<AccumulatorSpec> {
    let make = |given: Given<'_>| State::other(FirstN { count: given.count, values: VecDeque::new(), bytes: 0 });
    parse_n(FIRST_N.name, 5787801, make, argument, scope)
}

#[derive(Debug)]
struct FirstN {
    count: usize,
    values: VecDeque<Value<'static>>,
    bytes: usize,
}

impl FirstN {
    fn keep(&mut self, value: Option<ValueRef<'_>>) {
        let value = value.map_or(Value::NULL, Value::own);
        self.bytes += size_of::<Value<'static>>() + value.heap_bytes();
        self.values.push_back(value);
    }
}

impl Accumulator for FirstN {
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        if self.values.len() < self.count {
            self.keep(value);
        }
        limited::check("$firstN", self.bytes)
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        partial.as_array().map_or(Ok(()), |array| array.iter().try_for_each(|value| self.push(Some(value))))
    }

    fn partial(&self) -> Value<'static> {
        Value::array(self.values.iter().map(Value::or_null).collect::<ArrayBuf>())
    }

    fn finish(&mut self) -> Value<'static> {
        self.partial()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
