//! Which partition a document belongs to.

use espalier_value::{Error, Result, Value, ValueRef};

use crate::expression::{Env, Expression};

/// Appends the key of a document's partition. Null and missing are one partition.
pub(super) fn key<'a>(by: &'a Expression, env: &Env<'a>, out: &mut Vec<u8>) -> Result<()> {
    let value = by.eval(env)?;
    check(&value)?;
    env.context.collator().encode(out, value.or_null());
    Ok(())
}

pub(super) fn check(value: &Value<'_>) -> Result<()> {
    if let Some(ValueRef::Array(_)) = value.as_ref() {
        let message = "An expression used to partition cannot evaluate to value of type array";
        return Err(Error::type_mismatch(message));
    }
    Ok(())
}
