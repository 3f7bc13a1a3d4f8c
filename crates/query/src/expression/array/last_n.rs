//! `$lastN`: The last n elements of an array.

use super::super::prelude::*;

pub(super) static LAST_N: Operator = Operator {
    name: "$lastN",
    args: Args::Named(&super::n_of::NAMED),
    eval: Eval::Lazy(last_n),
    doc: "The last n elements of an array.",
};

fn last_n<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    super::n_of::of_array(args, |n, array| Value::array(array.iter().skip(array.len().saturating_sub(n)).collect()))
}
