//! `$lastN`: The last n elements of an array.

use super::super::prelude::*;

pub(super) static LAST_N: Operator = Operator {
    name: "$lastN",
    args: Args::Named(&super::n_of::NAMED),
    eval: Eval::Strict(last_n),
    doc: "The last n elements of an array.",
};

fn last_n<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let (n, array) = super::n_of::arguments(args)?;
    Ok(Value::array(array.iter().skip(array.len().saturating_sub(n)).collect()))
}
