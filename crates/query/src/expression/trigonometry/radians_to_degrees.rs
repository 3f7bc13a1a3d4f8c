//! `$radiansToDegrees`: An angle in radians, in degrees.

use super::super::prelude::*;

pub(super) static RADIANS_TO_DEGREES: Operator = Operator {
    name: "$radiansToDegrees",
    args: Args::Exactly(1),
    eval: Eval::Strict(radians_to_degrees),
    doc: "An angle in radians, in degrees.",
};

use super::super::arithmetic::unary::real;
use super::pi;

fn radians_to_degrees<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    real("$radiansToDegrees", &args[0], |x| Ok(x * (180.0 / std::f64::consts::PI)), |x| Ok(x.mul(pi::TO_DEGREES)))
}
