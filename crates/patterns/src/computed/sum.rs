//! A sum from which numbers can be taken away again as if they had never been there: whole numbers in 128 bits, doubles
//! as an exact sum of doubles that do not overlap (Shewchuk), decimals by themselves.

use espalier_value::number::Number;
use espalier_value::{ArrayBuf, Decimal128, DocBuf, RawDoc, Value, ValueRef};

use crate::bson::whole;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sum {
    /// How many numbers, and how many of each type but int.
    pub count: i64,
    longs: i64,
    doubles: i64,
    decimals: i64,
    integers: i128,
    /// From the smallest to the largest.
    parts: Vec<f64>,
    /// Numbers that no sum comes back from.
    nans: i64,
    infinite: i64,
    negative_infinite: i64,
    decimal: Option<Decimal128>,
}

impl Sum {
    pub fn add(&mut self, number: Number) {
        self.shift(number, 1);
        if let Number::Decimal(x) = number {
            self.decimal = Some(self.decimal.map_or(x, |sum| sum.add(x)));
        }
    }

    /// False if that cannot be done exactly: decimals round at 34 digits.
    pub fn take(&mut self, number: Number) -> bool {
        if matches!(number, Number::Decimal(_)) || self.parts.iter().any(|part| !part.is_finite()) {
            return false;
        }
        self.shift(number, -1);
        let counts = [self.count, self.longs, self.doubles, self.nans, self.infinite, self.negative_infinite];
        counts.iter().all(|count| *count >= 0)
    }

    fn shift(&mut self, number: Number, by: i64) {
        self.count += by;
        match number {
            Number::Int32(x) => self.integers += i128::from(x) * i128::from(by),
            Number::Int64(x) => {
                self.longs += by;
                self.integers += i128::from(x) * i128::from(by);
            }
            Number::Double(x) => {
                self.doubles += by;
                match x {
                    x if x.is_nan() => self.nans += by,
                    f64::INFINITY => self.infinite += by,
                    f64::NEG_INFINITY => self.negative_infinite += by,
                    x => grow(&mut self.parts, x * by as f64),
                }
            }
            Number::Decimal(_) => self.decimals += by,
        }
    }

    /// As `$sum` gives it: the widest type that is there.
    pub fn total(&self) -> Value<'static> {
        if self.decimals > 0 {
            return self.in_decimal().into();
        }
        if self.doubles > 0 {
            return self.in_double().into();
        }
        match i64::try_from(self.integers) {
            Ok(total) if self.longs > 0 => total.into(),
            Ok(total) => Number::narrowest(total).to_value().into(),
            Err(_) => (self.integers as f64).into(),
        }
    }

    /// As `$avg` gives it: null if there is nothing to divide by.
    pub fn mean(&self) -> Value<'static> {
        if self.count == 0 {
            Value::NULL
        } else if self.decimals > 0 {
            self.in_decimal().div(Decimal128::from_i64(self.count)).into()
        } else {
            (self.in_double() / self.count as f64).into()
        }
    }

    fn in_double(&self) -> f64 {
        if self.nans > 0 || (self.infinite > 0 && self.negative_infinite > 0) {
            return f64::NAN;
        }
        match (self.infinite, self.negative_infinite) {
            (0, 0) => {}
            (_, 0) => return f64::INFINITY,
            _ => return f64::NEG_INFINITY,
        }
        let mut parts = self.parts.clone();
        pieces(self.integers).for_each(|piece| grow(&mut parts, piece));
        rounded(&parts)
    }

    fn in_decimal(&self) -> Decimal128 {
        let own = self.decimal.unwrap_or(Decimal128::ZERO);
        let whole = match i64::try_from(self.integers) {
            Ok(whole) => Decimal128::from_i64(whole),
            Err(_) => Decimal128::from_f64_full(self.integers as f64),
        };
        let mut sum = own.add(whole);
        if self.nans + self.infinite + self.negative_infinite > 0 {
            return sum.add(Decimal128::from_f64_full(self.in_double()));
        }
        for part in &self.parts {
            sum = sum.add(Decimal128::from_f64_full(*part));
        }
        sum
    }

    /// In the shortest form: `{count: 3, sum: 13}` for whole numbers.
    pub fn to_document(&self) -> DocBuf {
        let mut doc = DocBuf::new();
        doc.append("count", Number::narrowest(self.count).to_value());
        match i64::try_from(self.integers) {
            Ok(whole) => doc.append("sum", Number::narrowest(whole).to_value()),
            Err(_) => doc.append("sum", self.integers.to_string().as_str()),
        };
        let counts = [
            ("longs", self.longs),
            ("doubles", self.doubles),
            ("decimals", self.decimals),
            ("nans", self.nans),
            ("infinite", self.infinite),
            ("negativeInfinite", self.negative_infinite),
        ];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count != 0) {
            doc.append(name, Number::narrowest(count).to_value());
        }
        if !self.parts.is_empty() {
            doc.append("parts", &self.parts.iter().map(|part| ValueRef::Double(*part)).collect::<ArrayBuf>());
        }
        if let Some(decimal) = self.decimal.filter(|_| self.decimals > 0) {
            doc.append("decimal", decimal);
        }
        doc
    }

    /// `None` if it is no such thing.
    pub fn from_document(doc: RawDoc<'_>) -> Option<Sum> {
        let count = |name| if doc.elem(name).is_some() { whole(doc.get(name)) } else { Some(0) };
        let integers = match doc.get("sum")? {
            ValueRef::String(text) => text.parse().ok()?,
            value => i128::from(whole(Some(value))?),
        };
        let parts = match doc.get("parts") {
            None => Vec::new(),
            Some(ValueRef::Array(parts)) => {
                let double = |value| if let ValueRef::Double(x) = value { Some(x) } else { None };
                parts.iter().map(double).collect::<Option<Vec<f64>>>()?
            }
            Some(_) => return None,
        };
        Some(Sum {
            count: whole(doc.get("count"))?,
            longs: count("longs")?,
            doubles: count("doubles")?,
            decimals: count("decimals")?,
            integers,
            parts,
            nans: count("nans")?,
            infinite: count("infinite")?,
            negative_infinite: count("negativeInfinite")?,
            decimal: if let Some(ValueRef::Decimal(x)) = doc.get("decimal") { Some(x) } else { None },
        })
    }
}

/// Adds a double to an exact sum of doubles. Equal sums end in equal parts: they do not overlap, and each is the nearest
/// double to what is left.
fn grow(parts: &mut Vec<f64>, x: f64) {
    add_part(parts, x);
    // Past the largest double there is no way back.
    if let Some(beyond) = parts.iter().copied().find(|part| !part.is_finite()) {
        *parts = vec![if beyond.is_nan() { f64::INFINITY.copysign(x) } else { beyond }];
        return;
    }
    if parts.len() > 1 {
        normalise(parts);
    }
}

/// The one form of a sum: from the top, each part the nearest double to all that is left.
fn normalise(parts: &mut Vec<f64>) {
    let mut out: Vec<f64> = Vec::with_capacity(parts.len());
    let mut rest = std::mem::take(parts);
    while !rest.is_empty() {
        let top = rounded(&rest);
        if top == 0.0 || !top.is_finite() {
            break;
        }
        out.push(top);
        let mut less = Vec::with_capacity(rest.len() + 1);
        rest.iter().chain(std::iter::once(&-top)).for_each(|part| add_part(&mut less, *part));
        rest = less;
    }
    out.reverse();
    *parts = out;
}

/// One step of Shewchuk's sum.
fn add_part(parts: &mut Vec<f64>, mut x: f64) {
    let mut kept = 0;
    for at in 0..parts.len() {
        let mut y = parts[at];
        if x.abs() < y.abs() {
            std::mem::swap(&mut x, &mut y);
        }
        let high = x + y;
        let low = y - (high - x);
        if low != 0.0 {
            parts[kept] = low;
            kept += 1;
        }
        x = high;
    }
    parts.truncate(kept);
    if x != 0.0 {
        parts.push(x);
    }
}

/// The double nearest to the sum of parts that do not overlap, smallest first.
fn rounded(parts: &[f64]) -> f64 {
    let Some((last, below)) = parts.split_last() else { return 0.0 };
    let (mut high, mut low) = (*last, 0.0);
    let mut left = below.len();
    while left > 0 {
        left -= 1;
        let x = high;
        let y = below[left];
        high = x + y;
        low = y - (high - x);
        if low != 0.0 {
            break;
        }
    }
    // Halfway between two doubles, what lies below decides.
    if left > 0 && ((low < 0.0 && below[left - 1] < 0.0) || (low > 0.0 && below[left - 1] > 0.0)) {
        let y = low * 2.0;
        let x = high + y;
        if y == x - high {
            high = x;
        }
    }
    high
}

/// A whole number as doubles that hold their share exactly.
fn pieces(x: i128) -> impl Iterator<Item = f64> {
    let sign = if x < 0 { -1.0 } else { 1.0 };
    let size = x.unsigned_abs();
    (0..3).map(move |at| ((size >> (48 * at)) & ((1 << 48) - 1)) as f64 * 2f64.powi(48 * at) * sign)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn double(x: f64) -> Number {
        Number::Double(x)
    }

    #[test]
    fn what_is_taken_away_was_never_there() {
        let numbers = [1e300, 1.0, -1e-300, 0.1, 1e16, -7.25, 3.3, 2e-308];
        let mut sum = Sum::default();
        numbers.iter().for_each(|x| sum.add(double(*x)));
        for x in &numbers[1..] {
            assert!(sum.take(double(*x)));
        }
        let mut alone = Sum::default();
        alone.add(double(1e300));
        assert_eq!(sum, alone);
    }

    #[test]
    fn the_order_does_not_matter() {
        let numbers = [0.1, 0.2, 0.3, 1e17, -1e17, 1e-9, 7.7, -0.6];
        let (mut a, mut b) = (Sum::default(), Sum::default());
        numbers.iter().for_each(|x| a.add(double(*x)));
        numbers.iter().rev().for_each(|x| b.add(double(*x)));
        assert_eq!(a.to_document(), b.to_document());
        assert_eq!(a.mean().or_null().to_string(), b.mean().or_null().to_string());
    }

    #[test]
    fn is_stored_and_read_back() {
        let mut sum = Sum::default();
        for number in
            [Number::Int64(i64::MAX), Number::Int64(i64::MAX), double(0.1), double(f64::NAN), Number::Int32(3)]
        {
            sum.add(number);
        }
        assert_eq!(Sum::from_document(sum.to_document().as_raw()), Some(sum));
    }

    #[test]
    fn whole_numbers_are_short() {
        let mut sum = Sum::default();
        [5, 4, 4].iter().for_each(|x| sum.add(Number::Int32(*x)));
        assert_eq!(sum.to_document(), espalier_value::doc! { "count": 3, "sum": 13 });
    }
}
