//! What `$eq`, `$gt`, `$gte`, `$lt` and `$lte` share: values compare only within their group of types, except that
//! null equals missing, and that everything lies between MinKey and MaxKey.

use std::cmp::Ordering;

use espalier_value::number::Number;
use espalier_value::{Collator, Error, Result, Value, ValueRef};

use crate::filter::brackets;
use crate::filter::{Bounds, Interval};

/// Which orders an operator accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Lt,
    Lte,
    Gt,
    Gte,
}

impl Op {
    fn accepts(self, order: Ordering) -> bool {
        match self {
            Op::Lt => order.is_lt(),
            Op::Lte => order.is_le(),
            Op::Gt => order.is_gt(),
            Op::Gte => order.is_ge(),
        }
    }

    fn is_inclusive(self) -> bool {
        matches!(self, Op::Lte | Op::Gte)
    }

    fn is_upward(self) -> bool {
        matches!(self, Op::Gt | Op::Gte)
    }
}

/// Checks the argument of an ordering operator and takes it over.
pub(crate) fn operand(path: &str, argument: ValueRef<'_>) -> Result<Value<'static>> {
    match argument {
        ValueRef::Regex(..) => {
            Err(Error::bad_value(format!("Can't have RegEx as arg to predicate over field '{path}'.")))
        }
        _ => defined(argument),
    }
}

/// Undefined can be stored but not asked for.
pub(crate) fn defined(argument: ValueRef<'_>) -> Result<Value<'static>> {
    match argument {
        ValueRef::Undefined => Err(Error::bad_value("cannot compare to undefined")),
        _ => Ok(Value::own(argument)),
    }
}

/// `value op wanted`, by the rules above.
#[inline]
pub(crate) fn matches(op: Op, value: Option<ValueRef<'_>>, wanted: ValueRef<'_>, collator: Collator<'_>) -> bool {
    let value = match value {
        Some(value) if !value.is_nullish() => value,
        // Null, undefined and missing are one to a comparison with null.
        _ => {
            return match wanted {
                ValueRef::Null => op.is_inclusive(),
                ValueRef::MinKey => op.is_upward(),
                ValueRef::MaxKey => !op.is_upward(),
                _ => false,
            };
        }
    };
    if value.ty().rank() != wanted.ty().rank() {
        return match wanted {
            ValueRef::MinKey => op.is_upward(),
            ValueRef::MaxKey => !op.is_upward(),
            _ => false,
        };
    }
    let is_nan = |v| Number::of(v).is_some_and(Number::is_nan);
    match (is_nan(value), is_nan(wanted)) {
        (false, false) => op.accepts(collator.compare(value, wanted)),
        // NaN is beside the order of numbers: equal to itself, neither above nor below any.
        (both, too) => both && too && op.is_inclusive(),
    }
}

pub(crate) fn bounds(op: Op, wanted: ValueRef<'_>, index: Collator<'_>) -> Bounds {
    let wanted = index.translate(wanted);
    let wanted = wanted.or_null();
    let rank = wanted.ty().rank();
    let is_nan = Number::of(wanted).is_some_and(Number::is_nan);
    let point = || if op.is_inclusive() { Bounds::of_equality(wanted) } else { Bounds::nothing() };
    match wanted {
        ValueRef::Null => point(),
        _ if is_nan => point(),
        // An array is indexed by its elements, which say nothing about the order of arrays.
        ValueRef::Array(_) => Bounds::everything(),
        // Everything lies on that side, what has no key of its own (missing) too.
        ValueRef::MinKey if op.is_upward() => Bounds::everything(),
        ValueRef::MaxKey if !op.is_upward() => Bounds::everything(),
        ValueRef::MinKey | ValueRef::MaxKey => point(),
        _ => {
            let edge = (Value::own(wanted), op.is_inclusive());
            let (low, high) = if op.is_upward() { (edge, brackets::end(rank)) } else { (start(rank), edge) };
            Bounds::exact(vec![Interval::new(low.0, low.1, high.0, high.1)])
        }
    }
}

/// As the bracket's start, but NaN, the least number in BSON's order, is below no number.
fn start(rank: u8) -> (Value<'static>, bool) {
    match brackets::start(rank) {
        (Value::Ref(ValueRef::Double(_)), _) => (Value::Ref(ValueRef::Double(f64::NEG_INFINITY)), true),
        other => other,
    }
}

/// Declares one ordering operator: its predicate, its parser and its entry.
macro_rules! ordering {
    ($op:ident, $predicate:ident, $entry:ident, $name:literal, $doc:literal) => {
        use std::sync::Arc;

        use espalier_value::collation::{self, Collation, Collator};
        use espalier_value::{DocBuf, Result, Value, ValueRef};

        use super::comparison::{self, Op};
        use super::{Operator, Place};
        use crate::context::Context;
        use crate::filter::parse::Field;
        use crate::filter::{Bounds, Node, Predicate};

        pub(super) const $entry: Operator = Operator { name: $name, place: Place::Field(parse), doc: $doc };

        fn parse(field: &Field<'_>) -> Result<Node> {
            let wanted = comparison::operand(field.path, field.argument)?;
            Ok(field.leaf($predicate { wanted, collation: field.parser.scope.collation().clone() }))
        }

        #[derive(Debug)]
        struct $predicate {
            wanted: Value<'static>,
            collation: Option<Arc<Collation>>,
        }

        impl Predicate for $predicate {
            fn name(&self) -> &'static str {
                $name
            }

            #[inline]
            fn matches(&self, value: Option<ValueRef<'_>>, _: &Context) -> Result<bool> {
                Ok(comparison::matches(Op::$op, value, self.wanted.or_null(), Collator::of(&self.collation)))
            }

            fn bounds(&self, index: Collator<'_>) -> Option<Bounds> {
                Some(comparison::bounds(Op::$op, self.wanted.or_null(), index))
            }

            fn is_collated(&self) -> bool {
                collation::is_collated(self.wanted.or_null())
            }

            fn describe(&self, out: &mut DocBuf) {
                out.append($name, self.wanted.or_null());
            }
        }
    };
}
pub(crate) use ordering;
