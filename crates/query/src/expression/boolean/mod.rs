//! Truth: one file each operator, listed in order of name.

use super::operator::Operator;

mod and;
mod not;
mod or;

pub(super) static ALL: &[&Operator] = &[&and::AND, &not::NOT, &or::OR];
