//! `$stdDevPop` over a window: The standard deviation of the numbers of the window as a population.

use espalier_value::Result;

use super::std_dev::StdDev;
use super::{Definition, Function, Given, accumulated};

pub(super) static STD_DEV_POP: Definition = Definition {
    name: "$stdDevPop",
    parse,
    doc: "The standard deviation of the numbers of the window as a population.",
};

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |_, _| Box::new(StdDev::new(false)))
}
