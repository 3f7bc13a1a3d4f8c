//! `$sinh`: The hyperbolic sine of a number.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static SINH: Operator = Operator {
    name: "$sinh",
    args: Args::Exactly(1),
    eval: Eval::Strict(sinh),
    doc: "The hyperbolic sine of a number.",
};

static FUNCTION: Function = Function {
    name: "$sinh",
    double: f64::sinh,
    decimal: |x, consts| x.sinh(PRECISION, NEAREST, consts),
    at_zero: AtZero::Padded,
    domain: Domain::All,
};

fn sinh<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
