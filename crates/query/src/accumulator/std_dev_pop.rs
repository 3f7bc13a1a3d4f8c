//! `$stdDevPop`: the standard deviation of the numbers as a population; everything else is ignored.

use super::State;
use super::definition::{Definition, Parse};
use super::expression_form::over;
use super::std_dev::StdDev;
use crate::expression::{Args, Eval, Operator};

const DOC: &str = "The standard deviation of the numbers as a population.";

pub(super) static STD_DEV_POP: Definition =
    Definition { name: "$stdDevPop", parse: Parse::Unary(|_| State::other(StdDev::new(false))), doc: DOC };

pub(super) static EXPRESSION: Operator = Operator {
    name: "$stdDevPop",
    args: Args::Any,
    eval: Eval::Strict(|args| over(StdDev::new(false), args)),
    doc: DOC,
};
