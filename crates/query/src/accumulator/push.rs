//! `$push`: an array of the values, in the order they come; missing ones are left out.

use espalier_value::{ArrayBuf, Result, Value, ValueRef};

use super::definition::{Definition, Parse};
use super::{Accumulator, State, limited};

pub(super) static PUSH: Definition = Definition {
    name: "$push",
    parse: Parse::Unary(|_| State::other(Push::default())),
    doc: "An array of the values, in the order they come.",
};

#[derive(Debug, Default)]
struct Push {
    array: ArrayBuf,
}

impl Accumulator for Push {
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        if let Some(value) = value {
            self.array.push(value);
            limited::check("$push", self.array.len_bytes())?;
        }
        Ok(())
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        partial.as_array().map_or(Ok(()), |array| array.iter().try_for_each(|value| self.push(Some(value))))
    }

    fn partial(&self) -> Value<'static> {
        Value::array(self.array.clone())
    }

    fn finish(&mut self) -> Value<'static> {
        Value::array(std::mem::take(&mut self.array))
    }

    fn peek(&mut self) -> Value<'static> {
        self.partial()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.array.len_bytes()
    }
}
