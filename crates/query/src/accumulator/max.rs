//! `$max`: the greatest value in BSON order; null and missing do not count. Null if there is no other.

use std::sync::Arc;

use espalier_value::{Collation, Collator, Result, Value, ValueRef};

use super::definition::{Definition, Parse};
use super::expression_form::each;
use super::{Accumulator, State};
use crate::expression::{Args, Eval, Operator};

const DOC: &str = "The greatest value in BSON order; null and missing do not count.";

pub(super) static MAX: Definition = Definition {
    name: "$max",
    parse: Parse::Unary(|given| State::Max(Max { collation: given.collation.clone(), ..Max::default() })),
    doc: DOC,
};

pub(super) static EXPRESSION: Operator =
    Operator { name: "$max", args: Args::Commutative, eval: Eval::Collated(expression), doc: DOC };

fn expression<'a>(args: &[Value<'a>], collator: Collator<'_>) -> Result<Value<'a>> {
    let mut best = Value::Missing;
    each(args, |value| {
        if let Some(value) = value.filter(|v| !v.is_nullish())
            && best.as_ref().is_none_or(|best| collator.compare(value, best).is_gt())
        {
            best = Value::own(value);
        }
        Ok(())
    })?;
    Ok(if best.is_missing() { Value::NULL } else { best })
}

#[derive(Debug, Default)]
pub struct Max {
    best: Value<'static>,
    collation: Option<Arc<Collation>>,
}

impl Accumulator for Max {
    #[inline]
    fn push(&mut self, value: Option<ValueRef<'_>>) -> Result<()> {
        let Some(value) = value.filter(|v| !v.is_nullish()) else { return Ok(()) };
        let is_better = self.best.as_ref().is_none_or(|best| {
            // Of equal values of different types (1 and 1.0) the last counts, unlike in the expression.
            Collator::of(&self.collation).compare(value, best).is_ge()
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
