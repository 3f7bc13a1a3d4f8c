//! `$firstN`: The first n elements of an array.

use super::super::prelude::*;

pub(super) static FIRST_N: Operator = Operator {
    name: "$firstN",
    args: Args::Named(&super::n_of::NAMED),
    eval: Eval::Lazy(first_n),
    doc: "The first n elements of an array.",
};

fn first_n<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    super::n_of::of_array(args, |n, array| Value::array(array.iter().take(n).collect()))
}
