//! `$min`: the smallest value in BSON order; null and missing do not count. Null if there is no other.

use espalier_value::{Result, Value, ValueRef, compare};

use super::definition::{Definition, Parse};
use super::expression_form::over;
use super::{Accumulator, State};
use crate::expression::{Args, Eval, Operator};

const DOC: &str = "The smallest value in BSON order; null and missing do not count.";

pub(super) static MIN: Definition =
    Definition { name: "$min", parse: Parse::Unary(|_| State::Min(Min::default())), doc: DOC };

pub(super) static EXPRESSION: Operator = Operator {
    name: "$min",
    args: Args::Commutative,
    eval: Eval::Strict(|args| over(Min { first_of_equal: true, ..Min::default() }, args)),
    doc: DOC,
};

#[derive(Debug, Default)]
pub struct Min {
    best: Value<'static>,
    /// Of equal values of different types (1 and 1.0) MongoDB's expression gives the first, its `$group` the last.
    first_of_equal: bool,
}

impl Accumulator for Min {
    #[inline]
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        let Some(value) = value.filter(|v| !v.is_nullish()) else { return Ok(()) };
        let is_better = self.best.as_ref().is_none_or(|best| {
            let order = compare(value, best);
            order.is_lt() || (order.is_eq() && !self.first_of_equal)
        });
        if is_better {
            self.best = Value::own(value);
        }
        Ok(())
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        self.push(Some(partial))
    }

    fn partial(&self) -> Value<'static> {
        if self.best.is_missing() { Value::NULL } else { self.best.clone() }
    }

    fn finish(&mut self) -> Value<'static> {
        self.partial()
    }

    fn memory(&self) -> usize {
        self.best.heap_bytes()
    }
}
