//! `$add`: The sum of numbers, or a date some milliseconds later.

use super::super::prelude::*;

pub(super) static ADD: Operator = Operator {
    name: "$add",
    args: Args::Commutative,
    eval: Eval::Lazy(add),
    doc: "The sum of numbers, or a date some milliseconds later.",
};

use crate::accumulator::summation::Sum;

fn add<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    let mut sum = Sum::default();
    let mut date = None;
    for arg in args.iter() {
        let arg = arg?;
        match arg.as_ref() {
            None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
            Some(ValueRef::DateTime(ms)) => {
                if date.replace(ms).is_some() {
                    return refuse(16612, "only one date allowed in an $add expression");
                }
            }
            Some(value) => match Number::of(value) {
                Some(number) => sum.add(number),
                None => {
                    let found = value.ty().name();
                    return refuse(16554, format!("$add only supports numeric or date types, not {found}"));
                }
            },
        }
    }
    match date {
        None => Ok(sum.total().to_value().into()),
        Some(ms) => later(ms, &mut sum),
    }
}

/// A fraction of a millisecond is cut off (rounded to even, if it is decimal).
fn later<'a>(ms: i64, sum: &mut Sum) -> Result<Value<'a>> {
    sum.add(Number::Int64(ms));
    let total = match sum.total() {
        Number::Int32(x) => Some(x.into()),
        Number::Int64(x) => Some(x),
        Number::Double(x) if x.trunc() >= i64::MIN as f64 && x.trunc() < i64::MAX as f64 => Some(x as i64),
        Number::Double(_) => None,
        Number::Decimal(x) => x.to_i64(Rounding::HalfEven).ok(),
    };
    match total {
        Some(ms) => Ok(Value::Ref(ValueRef::DateTime(ms))),
        None => Err(Error::new(Code::Overflow, "date overflow in $add")),
    }
}
