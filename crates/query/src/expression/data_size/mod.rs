//! Sizes in bytes: one file each operator, listed in order of name.

use super::operator::Operator;

mod binary_size;
mod bson_size;

pub(super) static ALL: &[&Operator] = &[&binary_size::BINARY_SIZE, &bson_size::BSON_SIZE];
