//! `$acos`: The angle in radians whose cosine is a number.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static ACOS: Operator = Operator {
    name: "$acos",
    args: Args::Exactly(1),
    eval: Eval::Strict(acos),
    doc: "The angle in radians whose cosine is a number.",
};

static FUNCTION: Function = Function {
    name: "$acos",
    double: f64::acos,
    decimal: |x, consts| x.acos(PRECISION, NEAREST, consts),
    at_zero: AtZero::Computed,
    domain: Domain::Unit,
};

fn acos<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
