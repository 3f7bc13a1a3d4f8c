//! The text of a value where an operator takes more than strings: numbers, dates, timestamps and code.

use std::borrow::Cow;

use espalier_value::date::Iso;
use espalier_value::display::general;

use super::super::prelude::*;

/// Null and missing give an empty text; what has none is refused.
pub(super) fn text<'v>(value: &'v Value<'_>) -> Result<Cow<'v, str>> {
    Ok(match value.as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => Cow::Borrowed(""),
        Some(ValueRef::String(s) | ValueRef::Symbol(s) | ValueRef::JavaScript(s)) => Cow::Borrowed(s),
        Some(ValueRef::Int32(x)) => x.to_string().into(),
        Some(ValueRef::Int64(x)) => x.to_string().into(),
        Some(ValueRef::Double(x)) => general(x, 6).into(),
        Some(ValueRef::Decimal(x)) => x.to_string().into(),
        Some(ValueRef::DateTime(ms)) => match Iso::of(ms) {
            Some(iso) => iso.to_string().into(),
            None => return refuse(18537, "date is out of the range that can be printed"),
        },
        Some(ValueRef::Timestamp(t)) => timestamp(t).into(),
        Some(other) => {
            return refuse(16007, format!("can't convert from BSON type {} to String", other.ty().name()));
        }
    })
}

/// As C's `ctime` writes it, without the year, and the increment.
fn timestamp(t: u64) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let civil = super::super::date::civil::Civil::of((t >> 32) as i64 * 1000);
    let month = MONTHS[(civil.month as usize - 1) % 12];
    format!("{month} {:>2} {:02}:{:02}:{:02}:{}", civil.day, civil.hour, civil.minute, civil.second, t as u32)
}
