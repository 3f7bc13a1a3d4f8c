//! `$sin`: The sine of an angle in radians.

use super::super::prelude::*;
use super::function::{AtZero, Domain, Function, NEAREST, PRECISION};

pub(super) static SIN: Operator =
    Operator { name: "$sin", args: Args::Exactly(1), eval: Eval::Strict(sin), doc: "The sine of an angle in radians." };

static FUNCTION: Function = Function {
    name: "$sin",
    double: f64::sin,
    decimal: |x, consts| x.sin(PRECISION, NEAREST, consts),
    at_zero: AtZero::Itself,
    domain: Domain::Finite,
};

fn sin<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    FUNCTION.eval(&args[0])
}
