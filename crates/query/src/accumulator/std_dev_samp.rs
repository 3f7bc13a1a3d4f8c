//! `$stdDevSamp`: the standard deviation of the numbers as a sample; everything else is ignored.

use super::State;
use super::definition::{Definition, Parse};
use super::expression_form::over;
use super::std_dev::StdDev;
use crate::expression::{Args, Eval, Operator};

const DOC: &str = "The standard deviation of the numbers as a sample.";

pub(super) static STD_DEV_SAMP: Definition =
    Definition { name: "$stdDevSamp", parse: Parse::Unary(|_| State::other(StdDev::new(true))), doc: DOC };

pub(super) static EXPRESSION: Operator = Operator {
    name: "$stdDevSamp",
    args: Args::Any,
    eval: Eval::Strict(|args| over(StdDev::new(true), args)),
    doc: DOC,
};
