//! `$covariancePop` over a window: how two expressions vary together, taken as a population.

use espalier_value::Result;

use super::{Definition, Function, Given, covariance};

pub(super) static COVARIANCE_POP: Definition = Definition {
    name: "$covariancePop",
    parse,
    doc: "The covariance of two expressions over the window, taken as a population.",
};

fn parse(given: &Given<'_>) -> Result<Function> {
    covariance::parse(given, false)
}
