//! `$cosh`: The hyperbolic cosine of a number.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static COSH: Operator = Operator {
    name: "$cosh",
    args: Args::Exactly(1),
    eval: Eval::Strict(cosh),
    doc: "The hyperbolic cosine of a number.",
};

static FUNCTION: Function = Function {
    name: "$cosh",
    double: f64::cosh,
    decimal: |x, consts| x.cosh(PRECISION, NEAREST, consts),
    at_zero: AtZero::One,
    domain: Domain::All,
};

fn cosh<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
