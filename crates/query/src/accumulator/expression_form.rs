//! The expression form of an accumulator: over several arguments, or over the elements of one that is an array.

use espalier_value::{Result, Value, ValueRef};

use super::Accumulator;

pub(super) fn over<'a>(mut state: impl Accumulator, args: &[Value<'a>]) -> Result<Value<'a>> {
    each(args, |value| state.push(value))?;
    Ok(state.finish())
}

/// The values that such an expression is about.
pub(super) fn each(args: &[Value<'_>], mut push: impl FnMut(Option<ValueRef<'_>>) -> Result<()>) -> Result<()> {
    match args {
        [single] => match single.as_ref() {
            Some(ValueRef::Array(array)) => array.iter().try_for_each(|value| push(Some(value))),
            value => push(value),
        },
        args => args.iter().try_for_each(|arg| push(arg.as_ref())),
    }
}
