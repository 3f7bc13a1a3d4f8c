//! `$replaceAll`: A string with every occurrence of another replaced.

use super::super::prelude::*;

pub(super) static REPLACE_ALL: Operator = Operator {
    name: "$replaceAll",
    args: Args::Named(&super::replacing::NAMED),
    eval: Eval::Strict(replace_all),
    doc: "A string with every occurrence of another replaced.",
};

fn replace_all<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    super::replacing::replace("$replaceAll", args, |input, find, replacement| input.replace(find, replacement))
}
