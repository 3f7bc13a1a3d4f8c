//! The expression form of an accumulator: over several arguments, or over the elements of one that is an array.

use espalier_value::{Result, Value, ValueRef};

use super::Accumulator;

pub(super) fn over<'a>(mut state: impl Accumulator, args: &[Value<'a>]) -> Result<Value<'a>> {
    match args {
        [single] => match single.as_ref() {
            Some(ValueRef::Array(array)) => {
                for value in array.iter() {
                    state.push(Some(value))?;
                }
            }
            value => state.push(value)?,
        },
        args => {
            for arg in args {
                state.push(arg.as_ref())?;
            }
        }
    }
    Ok(state.finish())
}
