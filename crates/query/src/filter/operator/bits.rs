//! What the four bit operators share: a set of bit positions, tested against whole numbers (as 64-bit two's
//! complement, whose sign goes on for ever) and binary data (bit 0 is the lowest of the first byte).

use espalier_value::decimal::Rounding;
use espalier_value::number::Number;
use espalier_value::{ArrayBuf, Error, Result, Type, ValueRef};

use super::integer::{non_negative, non_negative_int, show};
use crate::filter::Bounds;
use crate::filter::parse::Field;

/// Bit positions, sorted.
#[derive(Debug)]
pub(super) struct Bits {
    positions: Vec<u32>,
    /// The positions as a mask on a long; those past 63 stand on its sign bit.
    mask: u64,
}

impl Bits {
    /// A mask as a number or as binary data, or an array of positions.
    pub fn parse(name: &str, field: &Field<'_>) -> Result<Bits> {
        let mut positions: Vec<u32> = match field.argument {
            ValueRef::Array(array) => {
                let mut positions = Vec::new();
                for (index, position) in array.iter().enumerate() {
                    let position = non_negative_int(&index.to_string(), position)
                        .map_err(|why| Error::bad_value(format!("Failed to parse bit position. {why}")))?;
                    positions.push(position.unsigned_abs());
                }
                positions
            }
            ValueRef::Binary(_, data) => {
                let is_set = |at: &u32| bit_of(data, *at);
                (0..u32::try_from(data.len()).unwrap_or(u32::MAX).saturating_mul(8)).filter(is_set).collect()
            }
            number if number.is_number() => {
                let mask = non_negative(name, number).map_err(Error::failed_to_parse)?;
                (0..63).filter(|at| mask >> at & 1 == 1).collect()
            }
            other => {
                return Err(Error::bad_value(format!(
                    "{} takes an Array, a number, or a BinData but received: {name}: {}",
                    field.path,
                    show(other)
                )));
            }
        };
        positions.sort_unstable();
        positions.dedup();
        let mask = positions.iter().fold(0, |mask, at| mask | 1 << at.min(&63));
        Ok(Bits { positions, mask })
    }

    /// `Some(test of one position)` against every position; `None` if the value has no bits.
    pub fn counts(&self, value: Option<ValueRef<'_>>) -> Option<Count> {
        match value? {
            ValueRef::Binary(_, data) => {
                let set = self.positions.iter().filter(|at| bit_of(data, **at)).count();
                Some(Count { set, clear: self.positions.len() - set })
            }
            number => {
                let bits = whole(Number::of(number)?)? as u64;
                let set = (bits & self.mask).count_ones() as usize;
                Some(Count { set, clear: self.mask.count_ones() as usize - set })
            }
        }
    }

    pub fn bounds(&self) -> Bounds {
        let either = Bounds::of_rank(Type::Double.rank()).union(&Bounds::of_rank(Type::Binary.rank()));
        Bounds { exact: false, ..either }
    }

    pub fn to_array(&self) -> ArrayBuf {
        self.positions.iter().map(|at| ValueRef::Int64((*at).into())).collect()
    }
}

/// How many of the positions are set and clear.
pub(super) struct Count {
    pub set: usize,
    pub clear: usize,
}

/// A fraction has no bits, but a decimal is rounded; and one that fits no long has the sign bit alone, as in MongoDB.
fn whole(number: Number) -> Option<i64> {
    match number {
        Number::Decimal(d) => Some(d.to_i64(Rounding::HalfEven).unwrap_or(i64::MIN)),
        _ => number.as_exact_i64(),
    }
}

fn bit_of(data: &[u8], at: u32) -> bool {
    data.get(at as usize / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// Declares one bit operator: its predicate, its parser and its entry.
macro_rules! bit_test {
    ($predicate:ident, $entry:ident, $name:literal, $test:expr, $doc:literal) => {
        use espalier_value::{Collator, DocBuf, Result, ValueRef};

        use super::bits::{Bits, Count};
        use super::{Operator, Place};
        use crate::context::Context;
        use crate::filter::parse::Field;
        use crate::filter::{Bounds, Node, Predicate};

        pub(super) const $entry: Operator = Operator { name: $name, place: Place::Field(parse), doc: $doc };

        fn parse(field: &Field<'_>) -> Result<Node> {
            Ok(field.leaf($predicate { bits: Bits::parse($name, field)? }))
        }

        #[derive(Debug)]
        struct $predicate {
            bits: Bits,
        }

        impl Predicate for $predicate {
            fn name(&self) -> &'static str {
                $name
            }

            fn matches(&self, value: Option<ValueRef<'_>>, _: &Context) -> Result<bool> {
                let test: fn(Count) -> bool = $test;
                Ok(self.bits.counts(value).is_some_and(test))
            }

            fn bounds(&self, _: Collator<'_>) -> Option<Bounds> {
                Some(self.bits.bounds())
            }

            fn describe(&self, out: &mut DocBuf) {
                out.append($name, &self.bits.to_array());
            }
        }
    };
}
pub(super) use bit_test;
