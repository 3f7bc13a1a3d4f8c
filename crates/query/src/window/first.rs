//! `$first` over a window: the value of its first document, missing if that has none; null if the window is empty.

use espalier_value::{Result, Value};

use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given};

pub(super) static FIRST: Definition =
    Definition { name: "$first", parse, doc: "The value of the first document of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    let input = given.expression(given.argument)?;
    Ok(given.windowed(input, given.bounds()?, false, || Box::new(First(None))))
}

/// The first value that ever came: the result of a window without a lower bound.
struct First(Option<Value<'static>>);

impl Sliding for First {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        if self.0.is_none() {
            self.0 = Some(item.value.clone());
        }
        Ok(())
    }

    fn remove(&mut self, _at: u64, _item: &Item) -> Result<()> {
        self.0 = None;
        Ok(())
    }

    fn value(&mut self, window: &Window<'_>) -> Result<Value<'static>> {
        Ok(match window.first() {
            Some(item) => item.value.clone(),
            None => self.0.clone().unwrap_or(Value::NULL),
        })
    }

    fn is_of_first(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, Value::heap_bytes)
    }
}
