//! `$asinh`: The number whose hyperbolic sine is given.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static ASINH: Operator = Operator {
    name: "$asinh",
    args: Args::Exactly(1),
    eval: Eval::Strict(asinh),
    doc: "The number whose hyperbolic sine is given.",
};

static FUNCTION: Function = Function {
    name: "$asinh",
    double: f64::asinh,
    decimal: |x, consts| x.asinh(PRECISION, NEAREST, consts),
    at_zero: AtZero::Itself,
    domain: Domain::All,
};

fn asinh<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
