//! `$avg` over a window: the mean of the numbers; everything else is ignored. Null if there is none.

use espalier_value::number::Number;
use espalier_value::{Result, Value};

use super::removable::RemovableSum;
use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given, accumulated};

pub(super) static AVG: Definition = Definition { name: "$avg", parse, doc: "The mean of the numbers of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |_, _| Box::new(Avg(RemovableSum::default())))
}

struct Avg(RemovableSum);

impl Sliding for Avg {
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
        Ok(self.0.mean_value())
    }
}
