//! `$last` over a window: the value of its last document, missing if that has none; null if the window is empty.

use espalier_value::{Result, Value};

use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given};

pub(super) static LAST: Definition =
    Definition { name: "$last", parse, doc: "The value of the last document of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    let input = given.expression(given.argument)?;
    Ok(given.windowed(input, given.bounds()?, false, || Box::new(Last { value: Value::NULL, count: 0 })))
}

struct Last {
    value: Value<'static>,
    count: u64,
}

impl Sliding for Last {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        self.value = item.value.clone();
        self.count += 1;
        Ok(())
    }

    fn remove(&mut self, _at: u64, _item: &Item) -> Result<()> {
        self.count -= 1;
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        Ok(if self.count == 0 { Value::NULL } else { self.value.clone() })
    }

    fn memory(&self) -> usize {
        self.value.heap_bytes()
    }
}
