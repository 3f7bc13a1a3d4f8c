//! `$eq`, and the plain `{a: 1}`: equal in BSON's order, so that 1, 1.0 and NumberLong(1) are one. Null also matches
//! undefined and missing.

use std::sync::Arc;

use espalier_value::collation::{self, Collation, Collator};
use espalier_value::{DocBuf, Result, Value, ValueRef};

use super::{Operator, Place, comparison};
use crate::context::Context;
use crate::expression::Scope;
use crate::filter::parse::Field;
use crate::filter::{Bounds, Node, Predicate};

pub(super) const EQ: Operator =
    Operator { name: "$eq", place: Place::Field(parse), doc: "Values equal to the given one." };

fn parse(field: &Field<'_>) -> Result<Node> {
    Ok(field.leaf(Eq::new(field.argument, field.parser.scope)?))
}

#[derive(Debug)]
pub(crate) struct Eq {
    wanted: Value<'static>,
    collation: Option<Arc<Collation>>,
}

impl Eq {
    pub fn new(argument: ValueRef<'_>, scope: &Scope) -> Result<Eq> {
        Ok(Eq::of(comparison::defined(argument)?, scope))
    }

    pub fn of(wanted: Value<'static>, scope: &Scope) -> Eq {
        Eq { wanted, collation: scope.collation().clone() }
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
            Some(value) => Collator::of(&self.collation).equal(value, wanted),
        })
    }

    fn bounds(&self, index: Collator<'_>) -> Option<Bounds> {
        Some(Bounds::of_equality(index.translate(self.wanted.or_null()).or_null()))
    }

    fn negated_bounds(&self, multikey: bool, index: Collator<'_>) -> Option<Bounds> {
        Some(Bounds::of_none(std::iter::once(index.translate(self.wanted.or_null()).or_null()), multikey))
    }

    fn exact_bounds(&self, index: Collator<'_>) -> Option<Bounds> {
        Bounds::of_single(index.translate(self.wanted.or_null()).or_null())
    }

    fn is_collated(&self) -> bool {
        collation::is_collated(self.wanted.or_null())
    }

    fn equality(&self) -> Option<ValueRef<'_>> {
        Some(self.wanted.or_null())
    }

    fn describe(&self, out: &mut DocBuf) {
        out.append("$eq", self.wanted.or_null());
    }
}
