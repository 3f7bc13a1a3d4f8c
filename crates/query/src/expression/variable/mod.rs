//! Variables: one file each operator, listed in order of name.

use super::operator::Operator;

mod let_in;

pub(super) static ALL: &[&Operator] = &[&let_in::LET];
