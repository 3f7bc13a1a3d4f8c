//! `$maxN`: The n largest elements of an array, largest first; null does not count.

use super::super::prelude::*;

pub(super) static MAX_N: Operator = Operator {
    name: "$maxN",
    args: Args::Named(&super::n_of::NAMED),
    eval: Eval::Lazy(max_n),
    doc: "The n largest elements of an array, largest first; null does not count.",
};

fn max_n<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    super::n_of::of_array(args, |n, array| {
        let mut values: Vec<_> = array.iter().filter(|v| !v.is_nullish()).collect();
        values.sort_by(|&a, &b| espalier_value::compare(b, a));
        Value::array(values.into_iter().take(n).collect())
    })
}
