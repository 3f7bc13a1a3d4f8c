//! `$avg`: the mean of the numbers, a double or a decimal; everything else is ignored. Null if there is no number.

use espalier_value::number::Number;
use espalier_value::{Decimal128, Result, Value, ValueRef};

use super::definition::{Definition, Parse};
use super::expression_form::over;
use super::summation::Sum;
use super::{Accumulator, State};
use crate::expression::{Args, Eval, Operator};

const DOC: &str = "The mean of the numbers; everything else is ignored.";

pub(super) static AVG: Definition =
    Definition { name: "$avg", parse: Parse::Unary(|_| State::Avg(Avg::default())), doc: DOC };

pub(super) static EXPRESSION: Operator =
    Operator { name: "$avg", args: Args::Any, eval: Eval::Strict(|args| over(Avg::default(), args)), doc: DOC };

#[derive(Debug, Default)]
pub struct Avg {
    sum: Sum,
    count: i64,
}

impl Accumulator for Avg {
    #[inline]
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        if let Some(number) = value.and_then(Number::of) {
            self.sum.add(number);
            self.count += 1;
        }
        Ok(())
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        if let ValueRef::Document(doc) = partial {
            self.sum.merge(&Sum::from_document(doc));
            self.count += if let Some(ValueRef::Int64(count)) = doc.get("count") { count } else { 0 };
        }
        Ok(())
    }

    fn partial(&self) -> Value<'static> {
        let mut doc = self.sum.to_document();
        doc.append("count", self.count);
        Value::document(doc)
    }

    fn retract(&mut self, value: Option<ValueRef<'_>>) -> bool {
        match value.and_then(Number::of) {
            None => true,
            Some(number) => {
                let done = self.sum.retract(number);
                self.count -= i64::from(done);
                done
            }
        }
    }

    fn finish(&mut self) -> Value<'static> {
        if self.count == 0 {
            Value::NULL
        } else if self.sum.is_decimal() {
            self.sum.decimal().div(Decimal128::from_i64(self.count)).into()
        } else {
            (self.sum.double() / self.count as f64).into()
        }
    }

    fn memory(&self) -> usize {
        0
    }
}
