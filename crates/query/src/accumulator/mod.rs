//! Accumulators: what `$group` computes over many documents.

use crate::expression::Operator;

pub(crate) mod summation;

pub(crate) static EXPRESSIONS: &[&Operator] = &[];
