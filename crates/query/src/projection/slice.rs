//! `{field: {$slice: n}}` and `{field: {$slice: [skip, n]}}`: a run of an array's elements. In a `find` only; what
//! does not look like either is the aggregation expression of the same name.

use espalier_value::number::Number;
use espalier_value::{IndexName, RawArray, ValueRef};

/// Which elements are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slice {
    /// Elements to leave out before the run; counted from the end if negative.
    skip: i64,
    /// The length of the run.
    count: i64,
}

impl Slice {
    /// `None` if it is not of a form that `find` knows.
    pub fn parse(argument: ValueRef<'_>) -> Option<Slice> {
        let whole = |value| Some(Number::of(value)?.to_i64_clamped().clamp(i32::MIN.into(), i32::MAX.into()));
        match argument {
            ValueRef::Array(array) => {
                let mut values = array.iter();
                let (skip, count) = (whole(values.next()?)?, whole(values.next()?)?);
                (values.next().is_none() && count > 0).then_some(Slice { skip, count })
            }
            value => match whole(value)? {
                last @ ..0 => Some(Slice { skip: last, count: -last }),
                first => Some(Slice { skip: 0, count: first }),
            },
        }
    }

    /// Writes the elements that are kept, with their new indexes for names.
    pub fn write(self, array: RawArray<'_>, out: &mut Vec<u8>) {
        let skip = match self.skip {
            from_end @ ..0 => (array.len() as i64 + from_end).max(0),
            from_start => from_start,
        };
        let mut name = IndexName::new();
        for (at, elem) in array.elems().skip(skip as usize).take(self.count as usize).enumerate() {
            out.push(elem.type_byte());
            out.extend_from_slice(name.of(at).as_bytes());
            out.push(0);
            out.extend_from_slice(elem.value_bytes());
        }
    }
}
