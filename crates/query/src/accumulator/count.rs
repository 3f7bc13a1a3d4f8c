//! `$count`: the number of documents.

use espalier_value::number::Number;
use espalier_value::{Error, Result, Value, ValueRef};

use super::definition::{Definition, Parse};
use super::{Accumulator, AccumulatorSpec, State};
use crate::expression::{Expression, Scope};

pub(super) static COUNT: Definition =
    Definition { name: "$count", parse: Parse::Special(parse), doc: "The number of documents." };

fn parse(argument: ValueRef<'_>, _scope: &Scope) -> Result<AccumulatorSpec> {
    match argument {
        ValueRef::Document(doc) if doc.is_empty() => Ok(AccumulatorSpec {
            name: COUNT.name,
            expression: Expression::literal(ValueRef::Null),
            count: None,
            make: |_| State::Count(Count::default()),
            collation: None,
        }),
        _ => Err(Error::type_mismatch("$count takes no arguments, i.e. $count:{}")),
    }
}

#[derive(Debug, Default)]
pub struct Count(i64);

impl Accumulator for Count {
    #[inline]
    fn push(&mut self, _value: Option<ValueRef<'_>>) -> Result<()> {
        self.0 += 1;
        Ok(())
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        self.0 += Number::of(partial).map_or(0, Number::to_i64_clamped);
        Ok(())
    }

    fn partial(&self) -> Value<'static> {
        self.0.into()
    }

    fn retract(&mut self, _value: Option<ValueRef<'_>>) -> bool {
        self.0 -= 1;
        true
    }

    fn finish(&mut self) -> Value<'static> {
        Number::narrowest(self.0).to_value().into()
    }

    fn memory(&self) -> usize {
        0
    }
}
