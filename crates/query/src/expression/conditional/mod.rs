//! Choosing what to evaluate: one file each operator, listed in order of name.

use super::operator::Operator;

mod cond;
mod if_null;
mod switch;

pub(super) static ALL: &[&Operator] = &[&cond::COND, &if_null::IF_NULL, &switch::SWITCH];
