//! `$subtract`: The difference of two numbers or of two dates (in milliseconds), or a date some milliseconds earlier.

use super::super::prelude::*;

pub(super) static SUBTRACT: Operator = Operator {
    name: "$subtract",
    args: Args::Exactly(2),
    eval: Eval::Lazy(subtract),
    doc: "The difference of two numbers or of two dates (in milliseconds), or a date some milliseconds earlier.",
};

fn subtract<'a>(args: &Given<'_, 'a>) -> Result<Value<'a>> {
    // The right one first: if both fail, its error is told.
    let (right, left) = (args.at(1)?, args.at(0)?);
    let (Some(left), Some(right)) = (left.as_ref(), right.as_ref()) else { return Ok(Value::NULL) };
    if left.is_nullish() || right.is_nullish() {
        return Ok(Value::NULL);
    }
    match (left, right) {
        (ValueRef::DateTime(from), ValueRef::DateTime(to)) => match from.checked_sub(to) {
            Some(ms) => Ok(ms.into()),
            None => Err(Error::new(Code::Overflow, "date overflow in $subtract")),
        },
        (ValueRef::DateTime(ms), _) if right.is_number() => {
            let amount = whole_milliseconds(right)?;
            match ms.checked_sub(amount) {
                Some(ms) => Ok(Value::Ref(ValueRef::DateTime(ms))),
                None if amount == i64::MIN => {
                    Err(Error::new(Code::DurationOverflow, "Cannot negate the minimum duration"))
                }
                None => Err(Error::new(Code::Overflow, "date overflow in $subtract")),
            }
        }
        _ => match (Number::of(left), Number::of(right)) {
            (Some(left), Some(right)) => Ok(left.sub(right).to_value().into()),
            _ => Err(Error::type_mismatch(format!("can't $subtract {} from {}", right.ty().name(), left.ty().name()))),
        },
    }
}

fn whole_milliseconds(value: ValueRef<'_>) -> Result<i64> {
    let whole = match value {
        ValueRef::Double(x) if x.trunc() >= i64::MIN as f64 && x.trunc() < i64::MAX as f64 => Some(x as i64),
        ValueRef::Double(_) => None,
        ValueRef::Decimal(x) => x.to_i64(Rounding::HalfEven).ok(),
        _ => Number::of(value).map(Number::to_i64_clamped),
    };
    whole.ok_or_else(|| Error::new(Code(31109), format!("Can't coerce out of range value {value:?} to long")))
}
