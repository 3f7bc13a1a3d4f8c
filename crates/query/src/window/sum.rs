//! `$sum` over a window: the sum of the numbers; everything else is ignored.

use espalier_value::number::Number;
use espalier_value::{Result, Value};

use super::removable::RemovableSum;
use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given, accumulated};

pub(super) static SUM: Definition = Definition { name: "$sum", parse, doc: "The sum of the numbers of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |_, _| Box::new(Sum(RemovableSum::default())))
}

struct Sum(RemovableSum);

impl Sliding for Sum {
    fn add(&mut self, _at: u64, item: &Item) -> Result<()> {
        if let Some(number) = item.value().and_then(Number::of) {
            self.0.add(number);
        }
        Ok(())
    }

    fn remove(&mut self, _at: u64, item: &Item) -> Result<()> {
        if let Some(number) = item.value().and_then(Number::of) {
            self.0.remove(number);
        }
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        Ok(self.0.total().to_value().into())
    }
}
