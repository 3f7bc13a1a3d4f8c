//! `$last`: the value of the last document, in the order they come. A missing value is null.

use espalier_value::{ArrayBuf, Result, Value, ValueRef};

use super::definition::{Definition, Parse};
use super::{Accumulator, State};

pub(super) static LAST: Definition = Definition {
    name: "$last",
    parse: Parse::Unary(|_| State::other(Last::default())),
    doc: "The value of the last document, in the order they come.",
};

#[derive(Debug, Default)]
struct Last {
    value: Option<Value<'static>>,
}

impl Accumulator for Last {
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        self.value = Some(value.map_or(Value::NULL, Value::own));
        Ok(())
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        match partial.as_array().and_then(|array| array.get(0)) {
            Some(value) => self.push(Some(value)),
            None => Ok(()),
        }
    }

    /// An array of the value, empty if there was no document.
    fn partial(&self) -> Value<'static> {
        Value::array(self.value.iter().map(Value::or_null).collect::<ArrayBuf>())
    }

    fn finish(&mut self) -> Value<'static> {
        self.value.take().unwrap_or(Value::NULL)
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.value.as_ref().map_or(0, Value::heap_bytes)
    }
}
