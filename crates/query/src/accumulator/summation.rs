//! Sums of many numbers without the loss that plain addition of doubles has: a sum kept as two doubles (Møller's and
//! Knuth's 2Sum, Dekker's Fast2Sum), beside a decimal for what is decimal. Bit for bit what MongoDB computes, so that a
//! total does not depend on which of the two was asked.

use espalier_value::number::Number;
use espalier_value::{Decimal128, DocBuf, RawDoc, Value, ValueRef};

/// An unevaluated sum `high + low`, exact for integers up to 2^106.
#[derive(Clone, Copy, Debug, Default)]
struct DoubleDouble {
    high: f64,
    low: f64,
    /// The plain sum, which is right where infinities make the compensated one NaN.
    plain: f64,
}

const TWO_63: f64 = 9_223_372_036_854_775_808.0;

impl DoubleDouble {
    #[inline]
    fn add(&mut self, x: f64) {
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
    fn add_i64(&mut self, x: i64) {
        let high = x / (1 << 32) * (1 << 32);
        self.add((x - high) as f64);
        self.add(high as f64);
    }

    fn merge(&mut self, other: &DoubleDouble) {
        let plain = self.plain + other.plain;
        self.add(other.high);
        self.add(other.low);
        // An infinite sum may have NaN in its compensated form; the plain one tells.
        self.plain = plain;
    }

    fn to_f64(self) -> f64 {
        if self.high.is_nan() { self.plain } else { self.high }
    }

    fn to_decimal(self) -> Decimal128 {
        if self.high.is_finite() {
            Decimal128::from_f64_full(self.high).add(Decimal128::from_f64_full(self.low))
        } else {
            Decimal128::from_f64_full(self.plain)
        }
    }

    /// The sum rounded to a whole number, half away from zero; `None` if it fits no long.
    fn to_i64(self) -> Option<i64> {
        if self.high == TWO_63 {
            // One past the largest: only a negative rest brings it back.
            return (self.low < -0.5).then(|| (self.low.round() as i64).wrapping_sub(i64::MIN));
        }
        let in_range = (self.high > -TWO_63 && self.high < TWO_63) || (self.high == -TWO_63 && self.low >= -0.5);
        if !in_range {
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
    /// How many of each type beyond int were added: they decide the type of the total.
    long_count: u64,
    double_count: u64,
    decimal_count: u64,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum {
            doubles: DoubleDouble::default(),
            decimals: Decimal128::ZERO,
            long_count: 0,
            double_count: 0,
            decimal_count: 0,
        }
    }
}

impl Sum {
    #[inline]
    pub fn add(&mut self, number: Number) {
        match number {
            Number::Int32(x) => self.doubles.add(x.into()),
            Number::Double(x) => {
                self.double_count += 1;
                self.doubles.add(x);
            }
            Number::Int64(x) => {
                self.long_count += 1;
                self.doubles.add_i64(x);
            }
            Number::Decimal(x) => {
                self.decimal_count += 1;
                self.decimals = self.decimals.add(x);
            }
        }
    }

    /// Takes a whole number back, which is exact as long as only whole numbers were added.
    pub fn retract(&mut self, number: Number) -> bool {
        if self.double_count > 0 || self.decimal_count > 0 {
            return false;
        }
        match number {
            Number::Int32(x) => self.doubles.add(-f64::from(x)),
            Number::Int64(x) => {
                self.long_count = self.long_count.saturating_sub(1);
                let high = x / (1 << 32) * (1 << 32);
                self.doubles.add(-((x - high) as f64));
                self.doubles.add(-(high as f64));
            }
            Number::Double(_) | Number::Decimal(_) => return false,
        }
        true
    }

    pub fn merge(&mut self, other: &Sum) {
        self.doubles.merge(&other.doubles);
        self.decimals = if other.decimal_count > 0 { self.decimals.add(other.decimals) } else { self.decimals };
        self.long_count += other.long_count;
        self.double_count += other.double_count;
        self.decimal_count += other.decimal_count;
    }

    pub fn is_decimal(&self) -> bool {
        self.decimal_count > 0
    }

    /// An integer sum that no long holds becomes a double.
    pub fn total(&self) -> Number {
        if self.decimal_count > 0 {
            return Number::Decimal(self.decimal());
        }
        if self.double_count > 0 {
            return Number::Double(self.doubles.to_f64());
        }
        match self.doubles.to_i64() {
            None => Number::Double(self.doubles.to_f64()),
            Some(total) if self.long_count > 0 => Number::Int64(total),
            Some(total) => Number::narrowest(total),
        }
    }

    pub fn decimal(&self) -> Decimal128 {
        self.decimals.add(self.doubles.to_decimal())
    }

    pub fn double(&self) -> f64 {
        self.doubles.to_f64()
    }

    /// All of the state, to be merged into another sum.
    pub fn to_document(self) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append("high", self.doubles.high).append("low", self.doubles.low).append("plain", self.doubles.plain);
        doc.append("decimals", self.decimals);
        doc.append("longCount", self.long_count as i64);
        doc.append("doubleCount", self.double_count as i64);
        doc.append("decimalCount", self.decimal_count as i64);
        doc
    }

    pub fn from_document(doc: RawDoc<'_>) -> Sum {
        let double = |name| if let Some(ValueRef::Double(x)) = doc.get(name) { x } else { 0.0 };
        let count = |name| if let Some(ValueRef::Int64(n)) = doc.get(name) { n as u64 } else { 0 };
        let decimals = if let Some(ValueRef::Decimal(x)) = doc.get("decimals") { x } else { Decimal128::ZERO };
        Sum {
            doubles: DoubleDouble { high: double("high"), low: double("low"), plain: double("plain") },
            decimals,
            long_count: count("longCount"),
            double_count: count("doubleCount"),
            decimal_count: count("decimalCount"),
        }
    }

    pub fn total_value(&self) -> Value<'static> {
        self.total().to_value().into()
    }
}
