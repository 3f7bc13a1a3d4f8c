//! Comparison in BSON order: one file each operator, listed in order of name.

use super::operator::Operator;

mod cmp;
mod eq;
mod gt;
mod gte;
mod lt;
mod lte;
mod ne;

pub(super) static ALL: &[&Operator] = &[&cmp::CMP, &eq::EQ, &gt::GT, &gte::GTE, &lt::LT, &lte::LTE, &ne::NE];
