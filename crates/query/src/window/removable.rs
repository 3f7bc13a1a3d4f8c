//! Sums and means that give numbers back: as many of each kind as went in are taken out, so that the type of the
//! total narrows again, and what is not finite is counted instead of added.

use espalier_value::number::Number;
use espalier_value::{Decimal128, Value};

use crate::accumulator::summation::Sum;

#[derive(Debug, Default)]
pub(super) struct RemovableSum {
    sum: Sum,
    count: i64,
    longs: i64,
    doubles: i64,
    decimals: i64,
    nans: i64,
    infinities: i64,
    negative_infinities: i64,
}

impl RemovableSum {
    pub fn add(&mut self, number: Number) {
        self.update(number, 1);
    }

    pub fn remove(&mut self, number: Number) {
        self.update(number, -1);
    }

    fn update(&mut self, number: Number, quantity: i64) {
        self.count += quantity;
        match number {
            Number::Int32(_) => {}
            Number::Int64(_) => self.longs += quantity,
            Number::Double(_) => self.doubles += quantity,
            Number::Decimal(_) => self.decimals += quantity,
        }
        let (is_finite, is_negative) = match number {
            Number::Double(x) => (x.is_finite(), x.is_sign_negative()),
            Number::Decimal(x) => (x.is_finite(), x.is_sign_negative()),
            _ => (true, false),
        };
        if is_finite {
            self.sum.add(if quantity > 0 { number } else { number.mul(Number::Int32(-1)) });
        } else if number.is_nan() {
            self.nans += quantity;
        } else if is_negative {
            self.negative_infinities += quantity;
        } else {
            self.infinities += quantity;
        }
    }

    /// What is not finite decides alone.
    fn not_finite(&self) -> Option<Number> {
        let (double, decimal) = if self.nans > 0 || (self.infinities > 0 && self.negative_infinities > 0) {
            (f64::NAN, Decimal128::NAN)
        } else if self.infinities > 0 {
            (f64::INFINITY, Decimal128::INFINITY)
        } else if self.negative_infinities > 0 {
            (f64::NEG_INFINITY, Decimal128::NEG_INFINITY)
        } else {
            return None;
        };
        Some(if self.decimals > 0 { Number::Decimal(decimal) } else { Number::Double(double) })
    }

    pub fn total(&self) -> Number {
        if let Some(number) = self.not_finite() {
            return number;
        }
        let mut total = self.sum.total();
        if let Number::Decimal(x) = total
            && self.decimals == 0
        {
            total = Number::Double(x.to_f64());
        }
        const TWO_63: f64 = 9_223_372_036_854_775_808.0;
        if let Number::Double(x) = total
            && self.doubles == 0
            && (-TWO_63..TWO_63).contains(&x)
        {
            return Number::narrowest(x.round() as i64);
        }
        match total {
            Number::Int64(x) if self.longs == 0 => Number::narrowest(x),
            total => total,
        }
    }

    /// `None` if there are no numbers.
    pub fn mean(&self) -> Option<Number> {
        if self.count == 0 {
            return None;
        }
        Some(self.not_finite().unwrap_or_else(|| match self.total() {
            Number::Decimal(total) => Number::Decimal(total.div(Decimal128::from_i64(self.count))),
            total => Number::Double(total.to_f64() / self.count as f64),
        }))
    }

    pub fn mean_value(&self) -> Value<'static> {
        self.mean().map_or(Value::NULL, |mean| mean.to_value().into())
    }
}
