//! `$atanh`: The number whose hyperbolic tangent is given.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static ATANH: Operator = Operator {
    name: "$atanh",
    args: Args::Exactly(1),
    eval: Eval::Strict(atanh),
    doc: "The number whose hyperbolic tangent is given.",
};

static FUNCTION: Function = Function {
    name: "$atanh",
    double: f64::atanh,
    decimal: |x, consts| x.atanh(PRECISION, NEAREST, consts),
    at_zero: AtZero::Itself,
    domain: Domain::Unit,
};

fn atanh<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
