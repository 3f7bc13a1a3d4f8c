//! `$options`: the option letters of the `$regex` beside it.

use espalier_value::{Error, Result};

use super::{Operator, Place};
use crate::filter::parse::Field;

pub(super) const OPTIONS: Operator =
    Operator { name: "$options", place: Place::Modifier(check), doc: "Letters of the $regex beside it: i, m, s, x." };

/// `$regex` reads it; alone it means nothing.
fn check(field: &Field<'_>) -> Result<()> {
    match field.siblings.elem("$regex") {
        Some(_) => Ok(()),
        None => Err(Error::bad_value("$options needs a $regex")),
    }
}
