//! `$stdDevSamp` over a window: The standard deviation of the numbers of the window as a sample.

use espalier_value::Result;

use super::std_dev::StdDev;
use super::{Definition, Function, Given, accumulated};

pub(super) static STD_DEV_SAMP: Definition =
    Definition { name: "$stdDevSamp", parse, doc: "The standard deviation of the numbers of the window as a sample." };

fn parse(given: &Given<'_>) -> Result<Function> {
    accumulated::parse(given, |_, _| Box::new(StdDev::new(true)))
}
