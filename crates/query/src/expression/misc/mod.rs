//! What belongs to no other family: one file each operator, listed in order of name.

use super::operator::Operator;

mod function;
mod meta;
mod rand;

pub(super) static ALL: &[&Operator] = &[&function::FUNCTION, &meta::META, &rand::RAND];
