//! `$round`: A number rounded to a decimal place, half to even.

use super::super::prelude::*;

pub(super) static ROUND: Operator = Operator {
    name: "$round",
    args: Args::Between(1, 2),
    eval: Eval::Lazy(round),
    doc: "A number rounded to a decimal place, half to even.",
};

fn round<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    super::places::to_places("$round", args, Decimal128::round, f64::round_ties_even)
}
