//! Bounds against matching, on random values and conditions: a document that matches always has a key inside the
//! bounds, and where the bounds are exact a key inside them means a match. And the algebra against plain logic.

#![allow(clippy::unwrap_used)]

use espalier_value::{ArrayBuf, Collator, Decimal128, DocBuf, RawDoc, Value, ValueRef};

use super::{Bounds, Filter, bounds};
use crate::context::Context;
use crate::expression::Scope;

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn scalar(&mut self) -> Value<'static> {
        let strings = ["", "a", "ab", "abc", "b", "\u{10FFFF}"];
        match self.below(22) {
            0 => ValueRef::Null.into(),
            1 => ValueRef::MinKey.into(),
            2 => ValueRef::MaxKey.into(),
            3..=6 => (self.below(5) as i32 - 1).into(),
            7 => (self.below(4) as f64 / 2.0).into(),
            8 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0][self.below(4)].into(),
            9 => (1i64 << 53).into(),
            10 => Decimal128::from_i32(self.below(3) as i32).into(),
            11..=13 => Value::string(self.pick(&strings)),
            14 => (self.below(2) == 0).into(),
            15 => ValueRef::DateTime(self.below(3) as i64 - 1).into(),
            16 => ValueRef::Timestamp(self.below(3) as u64).into(),
            17 => ValueRef::ObjectId([self.below(2) as u8 * 255; 12]).into(),
            18 => Value::own(ValueRef::Binary(0, &[7][..self.below(2)])),
            19 => Value::own(ValueRef::Regex(self.pick(&["^a", "b"]), "")),
            20 => Value::own(ValueRef::JavaScript("f")),
            _ => Value::own(ValueRef::Symbol(self.pick(&strings))),
        }
    }

    fn value(&mut self, depth: usize) -> Value<'static> {
        match self.below(if depth < 2 { 10 } else { 7 }) {
            7 | 8 => {
                let mut array = ArrayBuf::new();
                for _ in 0..self.below(4) {
                    array.push_value(&self.value(depth + 1));
                }
                Value::array(array)
            }
            9 => Value::document(self.document(depth + 1)),
            _ => self.scalar(),
        }
    }

    fn document(&mut self, depth: usize) -> DocBuf {
        let mut doc = DocBuf::new();
        for name in ["a", "b"] {
            if self.below(3) > 0 {
                let value = self.value(depth);
                doc.append_value(name, &value);
            }
        }
        doc
    }

    /// `{$gt: …}` and the like, one operator.
    fn condition(&mut self, depth: usize) -> DocBuf {
        const NAMES: &[&str] = &[
            "$eq",
            "$ne",
            "$gt",
            "$gte",
            "$lt",
            "$lte",
            "$in",
            "$nin",
            "$exists",
            "$type",
            "$mod",
            "$regex",
            "$all",
            "$bitsAnySet",
            "$elemMatch",
            "$not",
        ];
        let mut doc = DocBuf::new();
        let name = self.pick(&NAMES[..if depth < 2 { NAMES.len() } else { NAMES.len() - 2 }]);
        match name {
            "$in" | "$nin" | "$all" => {
                let mut list = ArrayBuf::new();
                for _ in 0..self.below(4) {
                    list.push_value(&self.value(1));
                }
                doc.append(name, &list)
            }
            "$exists" => doc.append(name, self.below(2) == 0),
            "$type" => doc.append(
                name,
                self.pick(&[
                    "number",
                    "int",
                    "string",
                    "null",
                    "array",
                    "object",
                    "bool",
                    "date",
                    "undefined",
                    "regex",
                ]),
            ),
            "$mod" => doc.append_array(name, |pair| {
                pair.push(2).push(0);
            }),
            "$regex" => doc.append(name, self.pick(&["^a", "^ab", "b", "^a.*", "^a?b", "^(a)"])),
            "$bitsAnySet" => doc.append(name, 3),
            "$elemMatch" | "$not" => {
                let inner = self.condition(depth + 1);
                doc.append(name, &inner)
            }
            _ => {
                let value = loop {
                    let value = self.value(0);
                    if !matches!(value.or_null(), ValueRef::Regex(..)) {
                        break value;
                    }
                };
                doc.append_value(name, &value)
            }
        };
        doc
    }
}

/// The keys of an index on `path`, as MongoDB writes them, and whether they come from an array.
fn keys(doc: RawDoc<'_>, path: &str) -> (Vec<Value<'static>>, bool) {
    fn end(value: Option<ValueRef<'_>>, keys: &mut Vec<Value<'static>>) -> bool {
        match value {
            Some(ValueRef::Array(array)) => {
                if array.is_empty() {
                    keys.push(ValueRef::Undefined.into());
                }
                keys.extend(array.iter().map(Value::own));
                true
            }
            value => {
                keys.push(Value::own(value.unwrap_or(ValueRef::Null)));
                false
            }
        }
    }
    let mut found = Vec::new();
    let multikey = match path.split_once('.') {
        None => end(doc.get(path), &mut found),
        Some((first, rest)) => match doc.get(first) {
            Some(ValueRef::Document(inner)) => end(inner.get(rest), &mut found),
            Some(ValueRef::Array(array)) => {
                for element in array.iter() {
                    end(element.as_doc().and_then(|d| d.get(rest)), &mut found);
                }
                if array.is_empty() {
                    found.push(Value::NULL);
                }
                true
            }
            _ => end(None, &mut found),
        },
    };
    (found, multikey)
}

#[test]
fn a_match_lies_within_the_bounds() {
    let context = Context::default();
    let mut random = Random(1);
    let (mut matched, mut exact, mut single) = (0, 0, 0);
    for _ in 0..6_000 {
        let path = random.pick(&["a", "a", "a.b"]);
        let mut source = DocBuf::new();
        source.append(path, &random.condition(0));
        let Ok(filter) = Filter::parse(source.as_raw(), &Scope::default()) else { continue };
        for _ in 0..20 {
            let doc = random.document(0);
            let (keys, multikey) = keys(doc.as_raw(), path);
            if !multikey && let Some(bounds) = bounds::exactly(filter.root(), Collator::SIMPLE) {
                let inside = keys.iter().any(|key| bounds.contains(key.or_null()));
                let is_match = filter.matches(doc.as_raw(), &context).unwrap();
                assert_eq!(inside, is_match, "{source:?} on {doc:?}, exactly {bounds:?}");
                single += 1;
            }
            let Some((_, bounds)) = bounds::of(filter.root(), multikey, Collator::SIMPLE) else { continue };
            let inside = keys.iter().any(|key| bounds.contains(key.or_null()));
            let is_match = filter.matches(doc.as_raw(), &context).unwrap();
            assert!(inside || !is_match, "{source:?} matches {doc:?}, outside of {bounds:?}");
            matched += usize::from(is_match);
            if bounds.exact && inside {
                assert!(is_match, "{source:?} does not match {doc:?}, inside of exact {bounds:?}");
                exact += 1;
            }
        }
    }
    // The test is worth something only if it sees both.
    assert!(matched > 10_000 && exact > 1_000 && single > 1_000, "{matched} matches, {exact} exact, {single} single");
}

#[test]
fn the_algebra_is_logic() {
    let mut random = Random(2);
    let mut some = || -> Bounds {
        loop {
            let mut source = DocBuf::new();
            source.append("a", &random.condition(1));
            if let Ok(filter) = Filter::parse(source.as_raw(), &Scope::default())
                && let Some((_, bounds)) = bounds::of(filter.root(), false, Collator::SIMPLE)
            {
                return bounds;
            }
        }
    };
    let pairs: Vec<(Bounds, Bounds)> = (0..800).map(|_| (some(), some())).collect();
    for (left, right) in &pairs {
        let (both, either, neither) = (left.intersect(right), left.union(right), left.complement());
        // Undefined and null become one interval, as nothing lies between them.
        let twice = neither.complement();
        assert!(twice.intervals.len() <= left.intervals.len(), "{left:?}");
        for _ in 0..30 {
            let value = random.value(0);
            let value = value.or_null();
            let (l, r) = (left.contains(value), right.contains(value));
            assert_eq!(both.contains(value), l && r, "{value:?} in {left:?} and {right:?}");
            assert_eq!(either.contains(value), l || r, "{value:?} in {left:?} or {right:?}");
            assert_eq!(neither.contains(value), !l, "{value:?} not in {left:?}");
            assert_eq!(twice.contains(value), l, "{value:?} in {left:?}");
        }
        for bounds in [&both, &either, &neither] {
            let sorted = bounds
                .intervals
                .windows(2)
                .all(|pair| espalier_value::compare(pair[0].high.or_null(), pair[1].low.or_null()).is_le());
            assert!(sorted && bounds.intervals.iter().all(|i| !i.is_empty()), "{bounds:?}");
        }
    }
}
