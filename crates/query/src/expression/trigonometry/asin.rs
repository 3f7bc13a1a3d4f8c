//! `$asin`: The angle in radians whose sine is a number.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static ASIN: Operator = Operator {
    name: "$asin",
    args: Args::Exactly(1),
    eval: Eval::Strict(asin),
    doc: "The angle in radians whose sine is a number.",
};

static FUNCTION: Function = Function {
    name: "$asin",
    double: f64::asin,
    decimal: |x, consts| x.asin(PRECISION, NEAREST, consts),
    at_zero: AtZero::Padded,
    domain: Domain::Unit,
};

fn asin<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
