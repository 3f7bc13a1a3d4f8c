//! `$cos`: The cosine of an angle in radians.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static COS: Operator = Operator {
    name: "$cos",
    args: Args::Exactly(1),
    eval: Eval::Strict(cos),
    doc: "The cosine of an angle in radians.",
};

static FUNCTION: Function = Function {
    name: "$cos",
    double: f64::cos,
    decimal: |x, consts| x.cos(PRECISION, NEAREST, consts),
    at_zero: AtZero::One,
    domain: Domain::Finite,
};

fn cos<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
