//! `$covarianceSamp` over a window: how two expressions vary together, taken as a sample.

use espalier_value::Result;

use super::{Definition, Function, Given, covariance};

pub(super) static COVARIANCE_SAMP: Definition = Definition {
    name: "$covarianceSamp",
    parse,
    doc: "The covariance of two expressions over the window, taken as a sample.",
};

fn parse(given: &Given<'_>) -> Result<Function> {
    covariance::parse(given, true)
}
