//! `$first`: the value of the first document, in the order they come. A missing value is null.

use espalier_value::{ArrayBuf, Result, Value, ValueRef};

use super::definition::{Definition, Parse};
use super::{Accumulator, State};

pub(super) static FIRST: Definition = Definition {
    name: "$first",
    parse: Parse::Unary(|_| State::other(First::default())),
    doc: "The value of the first document, in the order they come.",
};

#[derive(Debug, Default)]
struct First {
    value: Option<Value<'static>>,
}

impl Accumulator for First {
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        if self.value.is_none() {
            self.value = Some(value.map_or(Value::NULL, Value::own));
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.value.is_some()
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

    fn peek(&mut self) -> Value<'static> {
        self.value.clone().unwrap_or(Value::NULL)
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.value.as_ref().map_or(0, Value::heap_bytes)
    }
}
