//! Sums of many numbers without the loss that plain addition of doubles has: a sum kept as two doubles (Møller's and
//! Knuth's 2Sum, Dekker's Fast2Sum), beside a decimal for what is decimal. Bit for bit what MongoDB computes, so that a
//! total does not depend on which of the two was asked.

use espalier_value::number::Number;
use espalier_value::{Decimal128, Type};

/// An unevaluated sum `high + low`, exact for integers up to 2^106.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DoubleDouble {
    high: f64,
    low: f64,
    /// The plain sum, which is right where infinities make the compensated one NaN.
    plain: f64,
}

const TWO_63: f64 = 9_223_372_036_854_775_808.0;

impl DoubleDouble {
    #[inline]
    pub fn add(&mut self, x: f64) {
        self.plain += x;
        // Fast2Sum: what is left over from before is smaller than anything it matters for.
        let joined = x + self.low;
        let left = self.low - (joined - x);
        // 2Sum: here either may be the larger.
        let high = self.high + joined;
        let old = high - joined;
        let lost = (self.high - old) + (joined - (high - old));
        self.high = high;
        self.low = left + lost;
    }

    /// Adds both halves of a long, each of which a double holds exactly.
    #[inline]
    pub fn add_i64(&mut self, x: i64) {
        let high = x / (1 << 32) * (1 << 32);
        self.add((x - high) as f64);
        self.add(high as f64);
    }

    pub fn merge(&mut self, other: &DoubleDouble) {
        self.add(other.high);
        self.add(other.low);
        // `plain` has taken `high`, which may be NaN where `other.plain` is an infinity.
        if other.high.is_nan() {
            self.high = f64::NAN;
            self.plain = if self.plain.is_nan() { other.plain } else { self.plain + other.plain };
        }
    }

    pub fn to_f64(self) -> f64 {
        if self.high.is_nan() { self.plain } else { self.high }
    }

    pub fn to_decimal(self) -> Decimal128 {
        if self.high.is_finite() {
            Decimal128::from_f64_full(self.high).add(Decimal128::from_f64_full(self.low))
        } else {
            Decimal128::from_f64_full(self.plain)
        }
    }

    /// The sum rounded to a whole number, half away from zero; `None` if it fits no long.
    pub fn to_i64(self) -> Option<i64> {
        if self.high == TWO_63 {
            // One past the largest: only a negative rest brings it back.
            return (self.low < -0.5).then(|| (self.low.round() as i64).wrapping_sub(i64::MIN));
        }
        if !(self.high > -TWO_63 && self.high < TWO_63 || self.high == -TWO_63 && self.low >= -0.5) {
            return None;
        }
        let whole = self.high.round() as i64;
        Some(whole.wrapping_add((self.high - whole as f64 + self.low).round() as i64))
    }
}

/// A sum of numbers of any type; its result has the widest type added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    doubles: DoubleDouble,
    decimals: Decimal128,
    widest: Type,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum { doubles: DoubleDouble::default(), decimals: Decimal128::ZERO, widest: Type::Int32 }
    }
}

impl Sum {
    #[inline]
    pub fn add(&mut self, number: Number) {
        match number {
            Number::Int32(x) => self.doubles.add(x.into()),
            Number::Int64(x) => {
                self.widen(Type::Int64);
                self.doubles.add_i64(x);
            }
            Number::Double(x) => {
                self.widen(Type::Double);
                self.doubles.add(x);
            }
            Number::Decimal(x) => {
                self.widest = Type::Decimal;
                self.decimals = self.decimals.add(x);
            }
        }
    }

    pub fn merge(&mut self, other: &Sum) {
        self.widen(other.widest);
        self.doubles.merge(&other.doubles);
        if other.widest == Type::Decimal {
            self.decimals = self.decimals.add(other.decimals);
        }
    }

    fn widen(&mut self, ty: Type) {
        let width = |t| match t {
            Type::Int32 => 0,
            Type::Int64 => 1,
            Type::Double => 2,
            _ => 3,
        };
        if width(ty) > width(self.widest) {
            self.widest = ty;
        }
    }

    pub fn is_decimal(&self) -> bool {
        self.widest == Type::Decimal
    }

    /// An integer sum that no long holds becomes a double.
    pub fn total(&self) -> Number {
        match self.widest {
            Type::Decimal => Number::Decimal(self.decimal()),
            Type::Double => Number::Double(self.doubles.to_f64()),
            Type::Int64 => self.doubles.to_i64().map_or(Number::Double(self.doubles.to_f64()), Number::Int64),
            _ => self.doubles.to_i64().map_or(Number::Double(self.doubles.to_f64()), Number::narrowest),
        }
    }

    pub fn decimal(&self) -> Decimal128 {
        self.decimals.add(self.doubles.to_decimal())
    }

    /// As [`Sum::total`], but a decimal total takes only the nearest double of what is not decimal: what `$add` does.
    pub fn total_of_few(&self) -> Number {
        match self.total() {
            Number::Decimal(_) => Number::Decimal(self.decimals.add(Decimal128::from_f64_full(self.doubles.to_f64()))),
            total => total,
        }
    }

    pub fn double(&self) -> f64 {
        self.doubles.to_f64()
    }
}
