//! Strings: one file each operator, listed in order of name.

use super::operator::Operator;

pub(super) static ALL: &[&Operator] = &[];
