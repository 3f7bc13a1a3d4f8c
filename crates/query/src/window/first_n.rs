//! `$firstN` over a window: the values of its first n documents; a missing value is null.

use espalier_value::{ArrayBuf, Result, Value};

use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given, accumulated};

pub(super) static FIRST_N: Definition =
    Definition { name: "$firstN", parse, doc: "The values of the first n documents of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |n, _| Box::new(FirstN(n)))
}

struct FirstN(usize);

impl Sliding for FirstN {
    fn add(&mut self, _at: u64, _item: &Item) -> Result<()> {
        Ok(())
    }

    fn value(&mut self, window: &Window<'_>) -> Result<Value<'static>> {
        Ok(Value::array(window.iter().take(self.0).map(|item| item.value.or_null()).collect::<ArrayBuf>()))
    }
}
