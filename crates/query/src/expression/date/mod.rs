//! Dates: one file each operator, listed in order of name.

use super::operator::Operator;

pub(super) mod civil;
pub(super) mod parse_date;
mod ts_increment;
mod ts_second;

pub(super) static ALL: &[&Operator] = &[&ts_increment::TS_INCREMENT, &ts_second::TS_SECOND];
