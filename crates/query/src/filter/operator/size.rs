//! `$size`: the value is an array of so many elements.

use espalier_value::{DocBuf, Error, Result, ValueRef};

use super::{Operator, Place, integer};
use crate::context::Context;
use crate::filter::parse::Field;
use crate::filter::{Node, Predicate, Reach};

pub(super) const SIZE: Operator =
    Operator { name: "$size", place: Place::Field(parse), doc: "The value is an array of the given length." };

fn parse(field: &Field<'_>) -> Result<Node> {
    let len = integer::non_negative_int("$size", field.argument)
        .map_err(|why| Error::bad_value(format!("Failed to parse $size. {why}")))?;
    Ok(field.leaf(Size { len }))
}

#[derive(Debug)]
struct Size {
    len: i32,
}

impl Predicate for Size {
    fn name(&self) -> &'static str {
        "$size"
    }

    fn matches(&self, value: Option<ValueRef<'_>>, _: &Context) -> Result<bool> {
        let Some(ValueRef::Array(array)) = value else { return Ok(false) };
        Ok(usize::try_from(self.len).is_ok_and(|len| array.len() == len))
    }

    fn reach(&self) -> Reach {
        Reach::Itself
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append("$size", self.len);
    }
}
