//! `$count` over a window: the number of documents.

use espalier_value::number::Number;
use espalier_value::{Error, Result, Value, ValueRef};

use super::runner::{Item, Sliding, Window};
use super::{Definition, Function, Given};
use crate::expression::Expression;

pub(super) static COUNT: Definition =
    Definition { name: "$count", parse, doc: "The number of documents in the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    match given.argument {
        ValueRef::Document(doc) if doc.is_empty() => {}
        _ => return Err(Error::failed_to_parse("$count only accepts an empty object as input")),
    }
    let nothing = Expression::literal(ValueRef::Null);
    Ok(given.windowed(nothing, given.bounds()?, false, || Box::new(Count(0))))
}

struct Count(i64);

impl Sliding for Count {
    fn add(&mut self, _at: u64, _item: &Item) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn remove(&mut self, _at: u64, _item: &Item) -> Result<()> {
        self.0 -= 1;
        Ok(())
    }

    fn value(&mut self, _window: &Window<'_>) -> Result<Value<'static>> {
        Ok(Number::narrowest(self.0).to_value().into())
    }
}
