//! `$replaceOne`: A string with the first occurrence of another replaced.

use super::super::prelude::*;

pub(super) static REPLACE_ONE: Operator = Operator {
    name: "$replaceOne",
    args: Args::Named(&super::replacing::NAMED),
    eval: Eval::Strict(replace_one),
    doc: "A string with the first occurrence of another replaced.",
};

fn replace_one<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    super::replacing::replace("$replaceOne", args, |input, find, replacement| input.replacen(find, replacement, 1))
}
