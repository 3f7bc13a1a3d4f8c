//! `$push` over a window: an array of the values, in the order of the documents; missing ones are left out.

use espalier_value::{ArrayBuf, Result, Value};

use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given, accumulated};

pub(super) static PUSH: Definition =
    Definition { name: "$push", parse, doc: "An array of the values of the window, in the order of the documents." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |_, _| Box::new(Push))
}

/// The window itself holds all there is to know.
struct Push;

impl Sliding for Push {
    fn add(&mut self, _at: u64, _item: &Item) -> Result<()> {
        Ok(())
    }

    fn value(&mut self, window: &Window<'_>) -> Result<Value<'static>> {
        Ok(Value::array(window.iter().filter_map(Item::value).collect::<ArrayBuf>()))
    }
}
