//! `$exp`: Euler's number raised to a power.

use super::super::prelude::*;

pub(super) static EXP: Operator = Operator {
    name: "$exp",
    args: Args::Exactly(1),
    eval: Eval::Strict(exp),
    doc: "Euler's number raised to a power.",
};

fn exp<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    super::unary::real("$exp", &args[0], |x| Ok(x.exp()), |x| Ok(x.exp()))
}
