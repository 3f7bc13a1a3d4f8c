//! `$min` over a window: The smallest value of the window.

use std::cmp::Ordering;

use espalier_value::Result;

use super::extreme::{self, Extreme};
use super::{Definition, Function, Given};

pub(super) static MIN: Definition = Definition { name: "$min", parse, doc: "The smallest value of the window." };

fn parse(given: &Given<'_>) -> Result<Function> {
    extreme::parse(given, Ordering::is_lt, Extreme::min)
}
