//! A sum as it is kept in a bucket, and what it takes to add sums of many buckets to what `$group` would get from the
//! readings one by one: a sum of doubles is kept with what one double cannot hold of it, and the type that the total of
//! all will have must be known.

use espalier_value::{Decimal128, DocBuf, RawDoc, Value, ValueRef};

/// Beyond this a sum of whole numbers is a double, which looks like a sum of doubles.
const WHOLE_MAX: f64 = 9_223_372_036_854_775_808.0;

/// What a total lacks, given all that was gathered: of doubles, the rest that one double cannot hold; 0 if the total is a
/// long though no long was added, only because it is too large for an int.
pub fn rest(total: ValueRef<'_>, gathered: &Value<'_>) -> Option<ValueRef<'static>> {
    let gathered = gathered.as_ref().and_then(ValueRef::as_doc).unwrap_or(RawDoc::EMPTY);
    match (total, gathered.get("low"), gathered.get("longCount")) {
        (ValueRef::Double(total), Some(ValueRef::Double(low)), _) if total.is_finite() && low != 0.0 => {
            Some(ValueRef::Double(low))
        }
        (ValueRef::Int64(_), _, Some(ValueRef::Int64(0))) => Some(ValueRef::Int32(0)),
        _ => None,
    }
}

/// The partial result of a `$sum` (with `count`, of an `$avg`) for a total and its rest; `None` if they do not tell it
/// exactly.
pub fn partial(total: ValueRef<'_>, rest: Option<ValueRef<'_>>, count: Option<i64>, out: &mut DocBuf) -> Option<()> {
    let (high, low, longs, doubles): (f64, f64, i64, i64) = match (total, rest) {
        (ValueRef::Int32(total), None) => (f64::from(total), 0.0, 0, 0),
        (ValueRef::Int64(total), rest @ (None | Some(ValueRef::Int32(0)))) => {
            let high = total as f64;
            let low = (i128::from(total) - high as i128) as f64;
            (high, low, i64::from(rest.is_none()), 0)
        }
        (ValueRef::Double(high), rest) if high.abs() < WHOLE_MAX => match rest {
            None => (high, 0.0, 0, 1),
            Some(ValueRef::Double(low)) => (high, low, 0, 1),
            Some(_) => return None,
        },
        _ => return None,
    };
    out.append("high", high).append("low", low).append("plain", high);
    out.append("decimals", ValueRef::Decimal(Decimal128::ZERO));
    out.append("longCount", longs).append("doubleCount", doubles).append("decimalCount", 0i64);
    if let Some(count) = count {
        out.append("count", count);
    }
    Some(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use espalier_query::Context;
    use espalier_query::accumulator::{self, Accumulator};
    use espalier_query::expression::Scope;
    use espalier_value::doc;

    use super::*;

    fn sum_of(values: &[ValueRef<'_>]) -> espalier_query::accumulator::State {
        let spec = doc! { "$sum": "$x" };
        let spec = accumulator::parse("x", ValueRef::Document(spec.as_raw()), &Scope::default()).unwrap();
        let mut state = spec.make(RawDoc::EMPTY, &Context::default()).unwrap();
        values.iter().for_each(|value| state.push(Some(*value)).unwrap());
        state
    }

    /// Adds the values in pieces, each kept as a bucket keeps it.
    fn in_pieces(values: &[ValueRef<'_>], len: usize) -> Option<Value<'static>> {
        let mut all = sum_of(&[]);
        for piece in values.chunks(len) {
            let mut state = sum_of(piece);
            let total = state.finish();
            let rest = rest(total.or_null(), &state.partial());
            let mut out = DocBuf::new();
            partial(total.or_null(), rest, None, &mut out)?;
            all.merge(ValueRef::Document(out.as_raw())).unwrap();
        }
        Some(all.finish())
    }

    #[test]
    fn sums_of_pieces_are_the_sum_of_all() {
        let ints: Vec<ValueRef<'_>> = (0..50).map(|i| ValueRef::Int32(i32::MAX - i)).collect();
        let back: Vec<ValueRef<'_>> =
            ints.iter().copied().chain((0..50).map(|i| ValueRef::Int32(i - i32::MAX + 1))).collect();
        let longs: Vec<ValueRef<'_>> = (0..40).map(|i| ValueRef::Int64((1 << 57) + i)).collect();
        let doubles: Vec<ValueRef<'_>> = (0..1000).map(|i| ValueRef::Double(f64::from(i) * 0.1 + 20.01)).collect();
        let mixed = [ValueRef::Int32(1), ValueRef::Double(0.1), ValueRef::Int64(7), ValueRef::String("x")];
        for values in [&ints[..], &back, &longs, &doubles, &mixed] {
            let expected = sum_of(values).finish();
            for len in [1, 3, 7, 100] {
                let got = in_pieces(values, len).unwrap();
                assert_eq!(format!("{got:?}"), format!("{expected:?}"), "in pieces of {len}");
            }
        }
    }

    #[test]
    fn what_is_not_told_exactly_is_not_told() {
        for value in [
            ValueRef::Decimal(Decimal128::ZERO),
            ValueRef::Double(f64::NAN),
            ValueRef::Double(f64::INFINITY),
            ValueRef::Double(1e19),
            ValueRef::Null,
        ] {
            assert!(partial(value, None, None, &mut DocBuf::new()).is_none(), "{value}");
        }
    }
}
