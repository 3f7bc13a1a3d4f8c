//! Documents: one file each operator, listed in order of name.

use super::operator::Operator;

mod object_to_array;

pub(super) static ALL: &[&Operator] = &[&object_to_array::OBJECT_TO_ARRAY];
