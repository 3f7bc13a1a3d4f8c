//! Constants: one file each operator, listed in order of name.

use super::operator::Operator;

// The operator has the name of its family.
#[allow(clippy::module_inception)]
mod literal;

pub(super) static ALL: &[&Operator] = &[&literal::CONST, &literal::LITERAL];
