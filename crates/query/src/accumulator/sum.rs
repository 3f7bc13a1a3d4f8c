//! `$sum`: the sum of the numbers; everything else is ignored. The type is the widest that was added.

use espalier_value::number::Number;
use espalier_value::{Result, Value, ValueRef};

use super::definition::{Definition, Parse};
use super::expression_form::over;
use super::summation::Sum;
use super::{Accumulator, State};
use crate::expression::{Args, Eval, Operator};

const DOC: &str = "The sum of the numbers; everything else is ignored.";

pub(super) static SUM: Definition =
    Definition { name: "$sum", parse: Parse::Unary(|_| State::Sum(SumState::default())), doc: DOC };

pub(super) static EXPRESSION: Operator = Operator {
    name: "$sum",
    args: Args::Commutative,
    eval: Eval::Strict(|args| over(SumState::default(), args)),
    doc: DOC,
};

#[derive(Debug, Default)]
pub struct SumState {
    sum: Sum,
}

impl Accumulator for SumState {
    #[inline]
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        if let Some(number) = value.and_then(Number::of) {
            self.sum.add(number);
        }
        Ok(())
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        if let ValueRef::Document(doc) = partial {
            self.sum.merge(&Sum::from_document(doc));
        }
        Ok(())
    }

    fn partial(&self) -> Value<'static> {
        Value::document(self.sum.to_document())
    }

    fn retract(&mut self, value: Option<ValueRef<'_>>) -> bool {
        value.and_then(Number::of).is_none_or(|number| self.sum.retract(number))
    }

    fn finish(&mut self) -> Value<'static> {
        self.sum.total_value()
    }

    fn memory(&self) -> usize {
        0
    }
}
