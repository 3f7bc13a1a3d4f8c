//! MongoDB's four numeric types as one: widening, arithmetic and exact comparison across them.
//!
//! The result of an operation has the widest type of its operands: int, long, double, decimal. An int result that
//! does not fit becomes a long; a long that does not fit is an error in an update (`checked_*` gives `None`) and a
//! double in an expression (`add`, `sub`, `mul`).

use std::cmp::Ordering;

use crate::decimal::Decimal128;
use crate::raw::ValueRef;

#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal128),
}

#[allow(clippy::should_implement_trait, reason = "`a.add(b)` reads as the operators that call it do")]
impl Number {
    #[inline]
    pub fn of(value: ValueRef<'_>) -> Option<Number> {
        match value {
            ValueRef::Int32(x) => Some(Number::Int32(x)),
            ValueRef::Int64(x) => Some(Number::Int64(x)),
            ValueRef::Double(x) => Some(Number::Double(x)),
            ValueRef::Decimal(x) => Some(Number::Decimal(x)),
            _ => None,
        }
    }

    pub fn to_value(self) -> ValueRef<'static> {
        match self {
            Number::Int32(x) => ValueRef::Int32(x),
            Number::Int64(x) => ValueRef::Int64(x),
            Number::Double(x) => ValueRef::Double(x),
            Number::Decimal(x) => ValueRef::Decimal(x),
        }
    }

    #[inline]
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int32(x) => x.into(),
            Number::Int64(x) => x as f64,
            Number::Double(x) => x,
            Number::Decimal(x) => x.to_f64(),
        }
    }

    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Int32(x) => Decimal128::from_i32(x),
            Number::Int64(x) => Decimal128::from_i64(x),
            Number::Double(x) => Decimal128::from_f64(x),
            Number::Decimal(x) => x,
        }
    }

    /// The value as a whole number, if it is exactly one that fits (2.0 is, 2.5 is not).
    pub fn as_exact_i64(self) -> Option<i64> {
        match self {
            Number::Int32(x) => Some(x.into()),
            Number::Int64(x) => Some(x),
            Number::Double(x) => f64_to_exact_i64(x),
            Number::Decimal(x) => x.to_i64_exact(),
        }
    }

    /// Rounds toward zero and clamps to the range of i64; NaN is 0. MongoDB's `safeNumberLong`.
    pub fn to_i64_clamped(self) -> i64 {
        match self {
            Number::Int32(x) => x.into(),
            Number::Int64(x) => x,
            Number::Double(x) => x as i64,
            Number::Decimal(x) => x.to_i64_clamped(),
        }
    }

    #[inline]
    pub fn is_nan(self) -> bool {
        match self {
            Number::Double(x) => x.is_nan(),
            Number::Decimal(x) => x.is_nan(),
            _ => false,
        }
    }

    pub fn is_zero(self) -> bool {
        self.compare(Number::Int32(0)) == Ordering::Equal
    }

    /// Exact, whatever the types: a long is never rounded to a double to compare it.
    #[inline]
    pub fn compare(self, other: Number) -> Ordering {
        use Number as N;
        match (self, other) {
            (N::Int32(x), N::Int32(y)) => x.cmp(&y),
            (N::Double(x), N::Double(y)) => compare_f64(x, y),
            (N::Decimal(x), N::Decimal(y)) => x.cmp_total(y),
            (N::Decimal(x), N::Double(y)) => x.cmp_f64(y),
            (N::Double(x), N::Decimal(y)) => y.cmp_f64(x).reverse(),
            (N::Decimal(x), y) => x.cmp_i64(y.whole()),
            (x, N::Decimal(y)) => y.cmp_i64(x.whole()).reverse(),
            (N::Double(x), y) => compare_f64_i64(x, y.whole()),
            (x, N::Double(y)) => compare_f64_i64(y, x.whole()).reverse(),
            (x, y) => x.whole().cmp(&y.whole()),
        }
    }

    /// An int or long as i64; only called where the type is one of the two.
    fn whole(self) -> i64 {
        self.to_i64_clamped()
    }

    pub fn add(self, other: Number) -> Number {
        self.checked_add(other).unwrap_or_else(|| Number::Double(self.to_f64() + other.to_f64()))
    }

    pub fn sub(self, other: Number) -> Number {
        self.checked_sub(other).unwrap_or_else(|| Number::Double(self.to_f64() - other.to_f64()))
    }

    pub fn mul(self, other: Number) -> Number {
        self.checked_mul(other).unwrap_or_else(|| Number::Double(self.to_f64() * other.to_f64()))
    }

    /// `None` if both are integers and the result fits no long.
    pub fn checked_add(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_add, |x, y| x + y, Decimal128::add)
    }

    pub fn checked_sub(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_sub, |x, y| x - y, Decimal128::sub)
    }

    pub fn checked_mul(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_mul, |x, y| x * y, Decimal128::mul)
    }

    fn combine(
        self,
        other: Number,
        whole: fn(i64, i64) -> Option<i64>,
        double: fn(f64, f64) -> f64,
        decimal: fn(Decimal128, Decimal128) -> Decimal128,
    ) -> Option<Number> {
        use Number as N;
        Some(match (self, other) {
            (N::Decimal(_), _) | (_, N::Decimal(_)) => N::Decimal(decimal(self.to_decimal(), other.to_decimal())),
            (N::Double(_), _) | (_, N::Double(_)) => N::Double(double(self.to_f64(), other.to_f64())),
            (N::Int32(x), N::Int32(y)) => Number::narrowest(whole(x.into(), y.into())?),
            (x, y) => N::Int64(whole(x.whole(), y.whole())?),
        })
    }

    /// An int if it fits, else a long.
    pub fn narrowest(x: i64) -> Number {
        i32::try_from(x).map_or(Number::Int64(x), Number::Int32)
    }
}

/// NaN equals NaN and is below everything; -0.0 equals 0.0.
pub fn compare_f64(x: f64, y: f64) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| y.is_nan().cmp(&x.is_nan()))
}

fn compare_f64_i64(x: f64, y: i64) -> Ordering {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    if x.is_nan() || x < -TWO_63 {
        Ordering::Less
    } else if x >= TWO_63 {
        Ordering::Greater
    } else {
        // In range, so the whole part is exact; the fraction decides a tie.
        let whole = x.trunc();
        (whole as i64).cmp(&y).then(compare_f64(x, whole))
    }
}

fn f64_to_exact_i64(x: f64) -> Option<i64> {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    (x.trunc() == x && (-TWO_63..TWO_63).contains(&x)).then_some(x as i64)
}
