//! Constants: one file each operator, listed in order of name.

use super::operator::Operator;

mod literal;

pub(super) static ALL: &[&Operator] = &[&literal::CONST, &literal::LITERAL];
