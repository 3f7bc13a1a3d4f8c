//! `$tanh`: The hyperbolic tangent of a number.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static TANH: Operator = Operator {
    name: "$tanh",
    args: Args::Exactly(1),
    eval: Eval::Strict(tanh),
    doc: "The hyperbolic tangent of a number.",
};

static FUNCTION: Function = Function {
    name: "$tanh",
    double: f64::tanh,
    decimal: |x, consts| x.tanh(PRECISION, NEAREST, consts),
    at_zero: AtZero::Itself,
    domain: Domain::All,
};

fn tanh<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
