//! Values as MongoDB's messages quote them.
//!
//! `Display` writes what messages about a request or a stored document use: `{ a: 1, b: [ "x", 1.5 ] }`, with
//! long strings and binaries cut. [`Computed`] writes the form of messages about a computed value, which is
//! tighter and complete: `{a: 1, b: ["x", 1.5]}`. Neither escapes anything, as MongoDB does not.

use std::fmt::{self, Display, Formatter};

use crate::date::Iso;
use crate::decimal::Decimal128;
use crate::oid::ObjectId;
use crate::raw::{RawArray, RawDoc, ValueRef};

/// Below this depth only `...` is written.
const DEPTH_MAX: usize = 100;
/// Strings of this length or more are cut to `STRING_CUT` bytes; the same for code and binaries.
const STRING_LIMIT: usize = 160;
const STRING_CUT: usize = 150;
const CODE_LIMIT: usize = 80;
const BINARY_LIMIT: usize = 81;
const SHORT_CUT: usize = 70;
const UUID_SUBTYPE: u8 = 4;

impl Display for RawDoc<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        document(f, *self, 0)
    }
}

impl Display for RawArray<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        array(f, *self, 0)
    }
}

impl Display for ValueRef<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        value(f, *self, 0)
    }
}

fn document(f: &mut Formatter<'_>, doc: RawDoc<'_>, depth: usize) -> fmt::Result {
    let mut separator = "{ ";
    for elem in doc.iter() {
        f.write_str(separator)?;
        separator = ", ";
        if depth > DEPTH_MAX {
            f.write_str("...")?;
        } else {
            write!(f, "{}: ", elem.name())?;
            value(f, elem.value(), depth)?;
        }
    }
    f.write_str(if separator == "{ " { "{}" } else { " }" })
}

fn array(f: &mut Formatter<'_>, array: RawArray<'_>, depth: usize) -> fmt::Result {
    let mut separator = "[ ";
    for item in array.iter() {
        f.write_str(separator)?;
        separator = ", ";
        if depth > DEPTH_MAX {
            f.write_str("...")?;
        } else {
            value(f, item, depth)?;
        }
    }
    f.write_str(if separator == "[ " { "[]" } else { " ]" })
}

fn value(f: &mut Formatter<'_>, v: ValueRef<'_>, depth: usize) -> fmt::Result {
    match v {
        ValueRef::Double(x) => {
            let text = general(x, 16);
            // MongoDB marks a double by its point, even where an exponent or "nan" precedes it.
            let mark = if text.contains('.') { "" } else { ".0" };
            write!(f, "{text}{mark}")
        }
        ValueRef::String(s) | ValueRef::Symbol(s) if s.len() >= STRING_LIMIT => {
            write!(f, "\"{}...\"", cut(s, STRING_CUT))
        }
        ValueRef::String(s) | ValueRef::Symbol(s) => write!(f, "\"{s}\""),
        ValueRef::Document(d) => document(f, d, depth + 1),
        ValueRef::Array(a) => array(f, a, depth + 1),
        ValueRef::Binary(UUID_SUBTYPE, bytes) if bytes.len() == 16 => {
            f.write_str("UUID(\"")?;
            for (i, byte) in bytes.iter().enumerate() {
                let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
                write!(f, "{dash}{byte:02x}")?;
            }
            f.write_str("\")")
        }
        ValueRef::Binary(subtype, bytes) => {
            let bytes = payload(subtype, bytes);
            match bytes.get(..SHORT_CUT) {
                Some(start) if bytes.len() >= BINARY_LIMIT => write!(f, "BinData({subtype}, {}...)", Hex(start)),
                _ => write!(f, "BinData({subtype}, {})", Hex(bytes)),
            }
        }
        ValueRef::ObjectId(id) => write!(f, "ObjectId('{}')", ObjectId(id)),
        ValueRef::DateTime(ms) => write!(f, "new Date({ms})"),
        ValueRef::DbPointer(namespace, id) => write!(f, "DBRef('{namespace}',{})", ObjectId(id)),
        ValueRef::JavaScript(code) if code.len() >= CODE_LIMIT => write!(f, "{}...", cut(code, SHORT_CUT)),
        ValueRef::JavaScript(code) => f.write_str(code),
        ValueRef::JavaScriptWithScope(code, scope) => {
            write!(f, "CodeWScope( {code}, ")?;
            document(f, scope, depth + 1)?;
            f.write_str(")")
        }
        ValueRef::Undefined
        | ValueRef::Bool(_)
        | ValueRef::Null
        | ValueRef::Regex(..)
        | ValueRef::Int32(_)
        | ValueRef::Timestamp(_)
        | ValueRef::Int64(_)
        | ValueRef::Decimal(_)
        | ValueRef::MinKey
        | ValueRef::MaxKey => plain(f, v),
    }
}

/// The types that both forms write alike.
fn plain(f: &mut Formatter<'_>, v: ValueRef<'_>) -> fmt::Result {
    match v {
        ValueRef::Undefined => f.write_str("undefined"),
        ValueRef::Bool(b) => write!(f, "{b}"),
        ValueRef::Regex(pattern, options) => write!(f, "/{pattern}/{options}"),
        ValueRef::Int32(n) => write!(f, "{n}"),
        ValueRef::Int64(n) => write!(f, "{n}"),
        ValueRef::Timestamp(t) => write!(f, "Timestamp({}, {})", t >> 32, t & u64::from(u32::MAX)),
        ValueRef::Decimal(d) => write!(f, "{d}"),
        ValueRef::MinKey => f.write_str("MinKey"),
        ValueRef::MaxKey => f.write_str("MaxKey"),
        _ => f.write_str("null"),
    }
}

/// A value in the form of messages about computed values: `{a: 1, b: [1, 2]}`.
#[derive(Clone, Copy)]
pub struct Computed<'a>(pub ValueRef<'a>);

impl Display for Computed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            ValueRef::Double(x) => f.write_str(&general(x, 6)),
            ValueRef::String(s) => write!(f, "\"{s}\""),
            ValueRef::Symbol(s) => write!(f, "Symbol(\"{s}\")"),
            ValueRef::Document(doc) => {
                f.write_str("{")?;
                for (i, elem) in doc.iter().enumerate() {
                    let separator = if i == 0 { "" } else { ", " };
                    write!(f, "{separator}{}: {}", elem.name(), Computed(elem.value()))?;
                }
                f.write_str("}")
            }
            ValueRef::Array(array) => {
                f.write_str("[")?;
                for (i, item) in array.iter().enumerate() {
                    let separator = if i == 0 { "" } else { ", " };
                    write!(f, "{separator}{}", Computed(item))?;
                }
                f.write_str("]")
            }
            ValueRef::Binary(subtype, bytes) => write!(f, "BinData({subtype}, \"{}\")", Hex(bytes)),
            ValueRef::ObjectId(id) => write!(f, "{}", ObjectId(id)),
            ValueRef::DateTime(ms) => match Iso::of(ms) {
                Some(iso) => write!(f, "{iso}"),
                None => f.write_str("illegal date"),
            },
            ValueRef::DbPointer(namespace, id) => write!(f, "DBRef(\"{namespace}\", {})", ObjectId(id)),
            ValueRef::JavaScript(code) => write!(f, "Code(\"{code}\")"),
            ValueRef::JavaScriptWithScope(code, scope) => write!(f, "CodeWScope(\"{code}\", {scope})"),
            ValueRef::Undefined
            | ValueRef::Bool(_)
            | ValueRef::Null
            | ValueRef::Regex(..)
            | ValueRef::Int32(_)
            | ValueRef::Timestamp(_)
            | ValueRef::Int64(_)
            | ValueRef::Decimal(_)
            | ValueRef::MinKey
            | ValueRef::MaxKey => plain(f, self.0),
        }
    }
}

/// The bytes that a binary is about: without the length that the old subtype repeats inside.
pub(crate) fn payload(subtype: u8, bytes: &[u8]) -> &[u8] {
    const OLD_BINARY: u8 = 2;
    match bytes.get(4..) {
        Some(rest) if subtype == OLD_BINARY => rest,
        _ => bytes,
    }
}

struct Hex<'a>(&'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

/// The first `len` bytes, or a few less so as not to split a character.
fn cut(text: &str, len: usize) -> &str {
    let end = (0..=len.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// A double as C's `%.{precision}g` writes it: so many significant digits, none of them a trailing zero.
pub fn general(x: f64, precision: i32) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let sign = if x.is_sign_negative() { "-" } else { "" };
    if x == 0.0 {
        return format!("{sign}0");
    }
    let rounded = Decimal128::from_f64_digits(x.abs(), precision).normalized();
    let (coefficient, exponent) = rounded.coefficient_and_exponent();
    let digits = coefficient.to_string();
    let leading = exponent + digits.len() as i32 - 1;
    if leading < -4 || leading >= precision {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let direction = if leading < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{direction}{:02}", leading.abs());
    }
    // In this range a decimal without exponent prints the same way; zeros take the exponent's place.
    match u32::try_from(exponent) {
        Ok(zeros) => format!("{sign}{digits}{}", "0".repeat(zeros as usize)),
        Err(_) => format!("{sign}{rounded}"),
    }
}

#[cfg(test)]
#[path = "display_tests.rs"]
mod tests;
