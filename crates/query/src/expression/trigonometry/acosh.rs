//! `$acosh`: The number whose hyperbolic cosine is given.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static ACOSH: Operator = Operator {
    name: "$acosh",
    args: Args::Exactly(1),
    eval: Eval::Strict(acosh),
    doc: "The number whose hyperbolic cosine is given.",
};

static FUNCTION: Function = Function {
    name: "$acosh",
    double: f64::acosh,
    decimal: |x, consts| x.acosh(PRECISION, NEAREST, consts),
    at_zero: AtZero::Computed,
    domain: Domain::FromOne,
};

fn acosh<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
