//! `$tan`: The tangent of an angle in radians.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static TAN: Operator = Operator {
    name: "$tan",
    args: Args::Exactly(1),
    eval: Eval::Strict(tan),
    doc: "The tangent of an angle in radians.",
};

static FUNCTION: Function = Function {
    name: "$tan",
    double: f64::tan,
    decimal: |x, consts| x.tan(PRECISION, NEAREST, consts),
    at_zero: AtZero::Itself,
    domain: Domain::Finite,
};

fn tan<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
