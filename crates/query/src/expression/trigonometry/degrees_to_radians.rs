//! `$degreesToRadians`: An angle in degrees, in radians.

use super::super::prelude::*;

pub(super) static DEGREES_TO_RADIANS: Operator = Operator {
    name: "$degreesToRadians",
    args: Args::Exactly(1),
    eval: Eval::Strict(degrees_to_radians),
    doc: "An angle in degrees, in radians.",
};

use super::super::arithmetic::unary::real;
use super::pi;

fn degrees_to_radians<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    real("$degreesToRadians", &args[0], |x| Ok(x * (std::f64::consts::PI / 180.0)), |x| Ok(x.mul(pi::TO_RADIANS)))
}
