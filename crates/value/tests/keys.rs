//! Keys against the order they stand for: random values of every type, compared both ways and read back.
#![allow(clippy::unwrap_used)]

use std::cmp::Ordering;

use espalier_value::key::{self, Decoder, Types};
use espalier_value::{ArrayBuf, Decimal128, DocBuf, Value, ValueRef, compare};

/// xorshift64*: the same values every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn text(&mut self) -> String {
        (0..self.below(4)).map(|_| ['\0', 'a', 'b', 'é', '\u{10FFFF}'][self.below(5) as usize]).collect()
    }

    fn number(&mut self) -> Value<'static> {
        let small = self.below(5) as i32 - 2;
        match self.below(10) {
            0 => small.into(),
            1 => i64::from(small).into(),
            2 => f64::from(small).into(),
            3 => (self.next() as i64).into(),
            4 => f64::from_bits(self.next()).into(),
            5 => ["1.5", "-0", "9007199254740993", "1E-6176", "9.99E+6144", "NaN", "-Infinity", "0.1"]
                [self.below(8) as usize]
                .parse::<Decimal128>()
                .unwrap()
                .into(),
            6 => ((1i64 << 53) + self.below(4) as i64).into(),
            7 => [f64::NAN, -0.0, f64::INFINITY, f64::NEG_INFINITY, 0.1, 5e-324][self.below(6) as usize].into(),
            8 => Decimal128::from_i64(self.next() as i64).into(),
            _ => i64::from(i32::MAX).wrapping_add(self.below(3) as i64).into(),
        }
    }

    fn value(&mut self, depth: u32) -> Value<'static> {
        match self.below(if depth == 0 { 16 } else { 19 }) {
            0 => Value::NULL,
            1 => ValueRef::MinKey.into(),
            2 => ValueRef::MaxKey.into(),
            3 => Value::string(self.text()),
            4 => Value::own(ValueRef::Symbol(&self.text())),
            5 => {
                Value::own(ValueRef::Binary(self.below(3) as u8, &self.next().to_be_bytes()[..self.below(8) as usize]))
            }
            6 => ValueRef::ObjectId([self.below(3) as u8; 12]).into(),
            7 => (self.below(2) == 1).into(),
            8 => ValueRef::DateTime(self.below(5) as i64 - 2).into(),
            9 => ValueRef::Timestamp(self.next()).into(),
            10 => Value::own(ValueRef::Regex("a", if self.below(2) == 0 { "i" } else { "" })),
            11 => ValueRef::Undefined.into(),
            12 => Value::own(ValueRef::JavaScript(&self.text())),
            13..=15 => self.number(),
            16 | 17 => {
                let mut doc = DocBuf::new();
                for _ in 0..self.below(3) {
                    let value = self.value(depth - 1);
                    doc.append_value(["a", "b", "ab"][self.below(3) as usize], &value);
                }
                Value::document(doc)
            }
            _ => {
                let mut array = ArrayBuf::new();
                for _ in 0..self.below(3) {
                    array.push_value(&self.value(depth - 1));
                }
                Value::array(array)
            }
        }
    }
}

fn directed(order: Ordering, descending: bool) -> Ordering {
    if descending { order.reverse() } else { order }
}

#[test]
fn keys_sort_as_values_do() {
    let mut random = Random(42);
    for _ in 0..200_000 {
        let (a, b) = (random.value(2), random.value(2));
        let descending = random.below(2) == 1;
        let (mut x, mut y) = (Vec::new(), Vec::new());
        key::encode_directed(&mut x, a.or_null(), descending);
        key::encode_directed(&mut y, b.or_null(), descending);
        let expected = directed(compare(a.or_null(), b.or_null()), descending);
        assert_eq!(x.cmp(&y), expected, "{a:?} against {b:?}\n{x:?}\n{y:?}");
        // No key is the beginning of another, so that keys can be strung together.
        assert!(x == y || !(x.starts_with(&y) || y.starts_with(&x)), "{a:?} and {b:?}");
    }
}

#[test]
fn keys_read_back_exactly() {
    let mut random = Random(7);
    for _ in 0..100_000 {
        let values = [random.value(2), random.value(2)];
        let descending = [random.below(2) == 1, random.below(2) == 1];
        let (mut encoded, mut types) = (Vec::new(), Types::new());
        for (value, descending) in values.iter().zip(descending) {
            key::encode_directed(&mut encoded, value.or_null(), descending);
            types.note(value.or_null());
        }
        let first = key::encoded_len(&encoded, descending[0]).unwrap();
        let second = key::encoded_len(&encoded[first..], descending[1]).unwrap();
        assert_eq!(first + second, encoded.len(), "{values:?}");
        let mut decoder = Decoder::new(&encoded, types.as_bytes());
        for (value, descending) in values.iter().zip(descending) {
            let back = decoder.next(descending).unwrap();
            let bytes = |v: &Value<'_>| {
                let mut doc = DocBuf::new();
                doc.append_value("v", v);
                doc.into_bytes()
            };
            // Bit for bit, NaN's payload aside.
            let nan = matches!(value.as_ref(), Some(ValueRef::Double(x)) if x.is_nan());
            assert!(nan || bytes(value) == bytes(&back), "{value:?} came back as {back:?}");
        }
        assert!(decoder.rest().is_empty());
    }
}

#[test]
fn order_is_total() {
    let mut random = Random(99);
    for _ in 0..50_000 {
        let (a, b, c) = (random.value(1), random.value(1), random.value(1));
        let cmp = |x: &Value<'_>, y: &Value<'_>| compare(x.or_null(), y.or_null());
        assert_eq!(cmp(&a, &b), cmp(&b, &a).reverse());
        if cmp(&a, &b).is_le() && cmp(&b, &c).is_le() {
            assert!(cmp(&a, &c).is_le(), "{a:?} {b:?} {c:?}");
        }
    }
}
