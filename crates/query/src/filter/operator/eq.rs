//! `$eq`, and the plain `{a: 1}`: equal in BSON's order, so that 1, 1.0 and NumberLong(1) are one. Null also matches
//! undefined and missing.

use espalier_value::{DocBuf, Result, Value, ValueRef, compare};

use super::{Operator, Place, comparison};
use crate::context::Context;
use crate::filter::parse::Field;
use crate::filter::{Bounds, Node, Predicate};

pub(super) const EQ: Operator =
    Operator { name: "$eq", place: Place::Field(parse), doc: "Values equal to the given one." };

fn parse(field: &Field<'_>) -> Result<Node> {
    Ok(field.leaf(Eq::new(field.argument)?))
}

#[derive(Debug)]
pub(crate) struct Eq {
    wanted: Value<'static>,
}

impl Eq {
    pub fn new(argument: ValueRef<'_>) -> Result<Eq> {
        Ok(Eq { wanted: comparison::defined(argument)? })
    }

    pub fn of(wanted: Value<'static>) -> Eq {
        Eq { wanted }
    }
}

impl Predicate for Eq {
    fn name(&self) -> &'static str {
        "$eq"
    }

    #[inline]
    fn matches(&self, value: Option<ValueRef<'_>>, _: &Context) -> Result<bool> {
        let wanted = self.wanted.or_null();
        Ok(match value {
            None | Some(ValueRef::Null | ValueRef::Undefined) => matches!(wanted, ValueRef::Null),
            Some(value) => compare::equal(value, wanted),
        })
    }

    fn bounds(&self) -> Option<Bounds> {
        Some(Bounds::of_equality(self.wanted.or_null()))
    }

    fn negated_bounds(&self, multikey: bool) -> Option<Bounds> {
        Some(Bounds::of_none(std::iter::once(self.wanted.or_null()), multikey))
    }

    fn equality(&self) -> Option<ValueRef<'_>> {
        Some(self.wanted.or_null())
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append("$eq", self.wanted.or_null());
    }
}
