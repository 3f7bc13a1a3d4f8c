//! `$locf`, "last observation carried forward": null and missing take the last value that was neither.

use espalier_value::{Result, Value};

use super::bounds::Bounds;
use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given};

pub(super) static LOCF: Definition =
    Definition { name: "$locf", parse, doc: "Null and missing take the last value that was neither." };

fn parse(given: &Given<'_>) -> Result<Function> {
    given.no_window()?;
    let input = given.expression(given.argument)?;
    Ok(given.windowed(input, Bounds::SO_FAR, false, || Box::new(Locf(Value::NULL))))
}

struct Locf(Value<'static>);

impl Sliding for Locf {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        if !item.value.is_nullish() {
            self.0 = item.value.clone();
        }
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        Ok(self.0.clone())
    }

    fn memory(&self) -> usize {
        self.0.heap_bytes()
    }
}
