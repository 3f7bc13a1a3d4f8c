//! `$maxN`: The n largest elements of an array, largest first; null does not count.

use std::collections::BTreeMap;

use super::super::prelude::*;

pub(super) static MAX_N: Operator = Operator {
    name: "$maxN",
    args: Args::Named(&super::n_of::NAMED),
    eval: Eval::Lazy(max_n),
    doc: "The n largest elements of an array, largest first; null does not count.",
};

fn max_n<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    super::n_of::of_array(args, |n, array| {
        // By key, then by place. Only what is beyond the least that is held takes its place, as in the accumulator.
        let mut greatest: BTreeMap<(Vec<u8>, usize), ValueRef<'_>> = BTreeMap::new();
        for (at, value) in array.iter().enumerate().filter(|(_, v)| !v.is_nullish()) {
            let key = args.collator().key(value);
            if greatest.len() >= n {
                match greatest.first_entry() {
                    Some(least) if key > least.key().0 => drop(least.remove()),
                    _ => continue,
                }
            }
            greatest.insert((key, at), value);
        }
        Value::array(greatest.into_values().rev().collect())
    })
}
