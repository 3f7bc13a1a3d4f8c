//! `$minN`: The n smallest elements of an array, smallest first; null does not count.

use super::super::prelude::*;

pub(super) static MIN_N: Operator = Operator {
    name: "$minN",
    args: Args::Named(&super::n_of::NAMED),
    eval: Eval::Lazy(min_n),
    doc: "The n smallest elements of an array, smallest first; null does not count.",
};

fn min_n<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    super::n_of::of_array(args, |n, array| {
        let mut values: Vec<_> = array.iter().filter(|v| !v.is_nullish()).collect();
        values.sort_by(|&a, &b| args.collator().compare(a, b));
        Value::array(values.into_iter().take(n).collect())
    })
}
