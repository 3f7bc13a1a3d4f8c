//! `$atan`: The angle in radians whose tangent is a number.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static ATAN: Operator = Operator {
    name: "$atan",
    args: Args::Exactly(1),
    eval: Eval::Strict(atan),
    doc: "The angle in radians whose tangent is a number.",
};

static FUNCTION: Function = Function {
    name: "$atan",
    double: f64::atan,
    decimal: |x, consts| x.atan(PRECISION, NEAREST, consts),
    at_zero: AtZero::Itself,
    domain: Domain::All,
};

fn atan<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
