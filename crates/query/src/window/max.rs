//! `$max` over a window: The greatest value of the window.

use std::cmp::Ordering;

use espalier_value::Result;

use super::extreme::{self, Extreme};
use super::{Definition, Function, Given};

pub(super) static MAX: Definition = Definition { name: "$max", parse, doc: "The greatest value of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    extreme::parse(given, Ordering::is_gt, Extreme::max)
}
