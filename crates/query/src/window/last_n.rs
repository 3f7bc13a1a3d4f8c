//! `$lastN` over a window: the values of its last n documents; a missing value is null.

use espalier_value::{ArrayBuf, Result, Value};

use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given, accumulated};

pub(super) static LAST_N: Definition =
    Definition { name: "$lastN", parse, doc: "The values of the last n documents of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |n, _| Box::new(LastN(n)))
}

struct LastN(usize);

impl Sliding for LastN {
    fn add(&mut self, _at: u64, _item: &Item) -> Result<()> {
        Ok(())
    }

    fn value(&mut self, window: &Window<'_>) -> Result<Value<'static>> {
        let skipped = window.iter().len().saturating_sub(self.0);
        Ok(Value::array(window.iter().skip(skipped).map(|item| item.value.or_null()).collect::<ArrayBuf>()))
    }
}
