//! `$firstN`: The first n elements of an array.

use super::super::prelude::*;

pub(super) static FIRST_N: Operator = Operator {
    name: "$firstN",
    args: Args::Named(&super::n_of::NAMED),
    eval: Eval::Strict(first_n),
    doc: "The first n elements of an array.",
};

fn first_n<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let (n, array) = super::n_of::arguments(args)?;
    Ok(Value::array(array.iter().take(n).collect()))
}
