//! BSON's total order: by the rank of the type, then by value. 1, 1.0 and NumberLong(1) are equal; -0.0 equals 0.0;
//! NaN equals NaN and is below every other number.

use std::cmp::Ordering;

use crate::collation::Collation;
use crate::number::Number;
use crate::raw::{RawArray, RawDoc, ValueRef};

pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    collated(a, b, None)
}

/// As [`compare`], but strings compare under the collation, wherever in the values they are.
pub(crate) fn collated(a: ValueRef<'_>, b: ValueRef<'_>, collation: Option<&Collation>) -> Ordering {
    let by_rank = a.ty().rank().cmp(&b.ty().rank());
    if by_rank != Ordering::Equal { by_rank } else { within_rank(a, b, collation) }
}

pub fn equal(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    compare(a, b) == Ordering::Equal
}

fn within_rank(a: ValueRef<'_>, b: ValueRef<'_>, collation: Option<&Collation>) -> Ordering {
    use ValueRef as V;
    match (a, b) {
        (V::Int32(x), V::Int32(y)) => x.cmp(&y),
        (V::String(x) | V::Symbol(x), V::String(y) | V::Symbol(y)) => match collation {
            None => x.as_bytes().cmp(y.as_bytes()),
            Some(collation) => collation.compare(x, y),
        },
        (V::Document(x), V::Document(y)) => docs(x, y, collation),
        (V::Array(x), V::Array(y)) => arrays(x, y, collation),
        (V::Binary(s, x), V::Binary(t, y)) => x.len().cmp(&y.len()).then(s.cmp(&t)).then_with(|| x.cmp(y)),
        (V::ObjectId(x), V::ObjectId(y)) => x.cmp(&y),
        (V::Bool(x), V::Bool(y)) => x.cmp(&y),
        (V::DateTime(x), V::DateTime(y)) => x.cmp(&y),
        (V::Timestamp(x), V::Timestamp(y)) => x.cmp(&y),
        (V::Regex(p, o), V::Regex(q, r)) => p.cmp(q).then_with(|| o.cmp(r)),
        (V::DbPointer(n, x), V::DbPointer(m, y)) => n.len().cmp(&m.len()).then_with(|| n.cmp(m)).then(x.cmp(&y)),
        (V::JavaScript(x), V::JavaScript(y)) => x.cmp(y),
        (V::JavaScriptWithScope(x, s), V::JavaScriptWithScope(y, t)) => x.cmp(y).then_with(|| docs(s, t, collation)),
        _ => match (Number::of(a), Number::of(b)) {
            (Some(x), Some(y)) => x.compare(y),
            // Null, undefined, MinKey, MaxKey: one value a type.
            _ => Ordering::Equal,
        },
    }
}

/// Field by field: type, then name, then value; the shorter first.
pub fn compare_docs(a: RawDoc<'_>, b: RawDoc<'_>) -> Ordering {
    docs(a, b, None)
}

fn docs(a: RawDoc<'_>, b: RawDoc<'_>, collation: Option<&Collation>) -> Ordering {
    let (mut left, mut right) = (a.iter(), b.iter());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) => {
                let (v, w) = (x.value(), y.value());
                let order = (v.ty().rank().cmp(&w.ty().rank()))
                    .then_with(|| x.name_bytes().cmp(y.name_bytes()))
                    .then_with(|| within_rank(v, w, collation));
                if order != Ordering::Equal {
                    return order;
                }
            }
        }
    }
}

pub fn compare_arrays(a: RawArray<'_>, b: RawArray<'_>) -> Ordering {
    arrays(a, b, None)
}

fn arrays(a: RawArray<'_>, b: RawArray<'_>, collation: Option<&Collation>) -> Ordering {
    let (mut left, mut right) = (a.iter(), b.iter());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) => {
                let order = collated(x, y, collation);
                if order != Ordering::Equal {
                    return order;
                }
            }
        }
    }
}
