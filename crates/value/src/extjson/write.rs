//! The writer behind both forms: one match over the types.

use std::fmt::{self, Formatter, Write};

use super::base64::Base64;
use crate::date::Iso;
use crate::display::payload;
use crate::oid::ObjectId;
use crate::raw::{RawDoc, ValueRef};

pub(super) fn value(f: &mut Formatter<'_>, v: ValueRef<'_>, canonical: bool) -> fmt::Result {
    match v {
        ValueRef::Double(x) => double(f, x, canonical),
        ValueRef::String(s) => string(f, s),
        ValueRef::Document(doc) => document(f, doc, canonical),
        ValueRef::Array(array) => {
            f.write_char('[')?;
            for (i, item) in array.iter().enumerate() {
                if i > 0 {
                    f.write_char(',')?;
                }
                value(f, item, canonical)?;
            }
            f.write_char(']')
        }
        ValueRef::Binary(subtype, bytes) => {
            let base64 = Base64(payload(subtype, bytes));
            write!(f, "{{\"$binary\":{{\"base64\":\"{base64}\",\"subType\":\"{subtype:02x}\"}}}}")
        }
        ValueRef::Undefined => f.write_str("{\"$undefined\":true}"),
        ValueRef::ObjectId(id) => write!(f, "{{\"$oid\":\"{}\"}}", ObjectId(id)),
        ValueRef::Bool(b) => write!(f, "{b}"),
        ValueRef::DateTime(ms) => date(f, ms, canonical),
        ValueRef::Null => f.write_str("null"),
        ValueRef::Regex(pattern, options) => {
            f.write_str("{\"$regularExpression\":{\"pattern\":")?;
            string(f, pattern)?;
            f.write_str(",\"options\":")?;
            string(f, options)?;
            f.write_str("}}")
        }
        ValueRef::DbPointer(namespace, id) => {
            f.write_str("{\"$dbPointer\":{\"$ref\":")?;
            string(f, namespace)?;
            write!(f, ",\"$id\":{{\"$oid\":\"{}\"}}}}}}", ObjectId(id))
        }
        ValueRef::JavaScript(code) => {
            f.write_str("{\"$code\":")?;
            string(f, code)?;
            f.write_char('}')
        }
        ValueRef::Symbol(symbol) => {
            f.write_str("{\"$symbol\":")?;
            string(f, symbol)?;
            f.write_char('}')
        }
        ValueRef::JavaScriptWithScope(code, scope) => {
            f.write_str("{\"$code\":")?;
            string(f, code)?;
            f.write_str(",\"$scope\":")?;
            document(f, scope, canonical)?;
            f.write_char('}')
        }
        ValueRef::Int32(n) if canonical => write!(f, "{{\"$numberInt\":\"{n}\"}}"),
        ValueRef::Int32(n) => write!(f, "{n}"),
        ValueRef::Timestamp(t) => {
            write!(f, "{{\"$timestamp\":{{\"t\":{},\"i\":{}}}}}", t >> 32, t & u64::from(u32::MAX))
        }
        ValueRef::Int64(n) if canonical => write!(f, "{{\"$numberLong\":\"{n}\"}}"),
        ValueRef::Int64(n) => write!(f, "{n}"),
        ValueRef::Decimal(d) => write!(f, "{{\"$numberDecimal\":\"{d}\"}}"),
        ValueRef::MinKey => f.write_str("{\"$minKey\":1}"),
        ValueRef::MaxKey => f.write_str("{\"$maxKey\":1}"),
    }
}

fn document(f: &mut Formatter<'_>, doc: RawDoc<'_>, canonical: bool) -> fmt::Result {
    f.write_char('{')?;
    for (i, elem) in doc.iter().enumerate() {
        if i > 0 {
            f.write_char(',')?;
        }
        string(f, elem.name())?;
        f.write_char(':')?;
        value(f, elem.value(), canonical)?;
    }
    f.write_char('}')
}

/// The shortest digits that read back as the same double; a whole one keeps its point.
fn double(f: &mut Formatter<'_>, x: f64, canonical: bool) -> fmt::Result {
    if x.is_nan() {
        f.write_str("{\"$numberDouble\":\"NaN\"}")
    } else if x.is_infinite() {
        let sign = if x < 0.0 { "-" } else { "" };
        write!(f, "{{\"$numberDouble\":\"{sign}Infinity\"}}")
    } else if canonical {
        write!(f, "{{\"$numberDouble\":\"{x:?}\"}}")
    } else {
        write!(f, "{x:?}")
    }
}

/// Relaxed writes text for years that every reader understands, 1970 to 9999, without a fraction of zero.
fn date(f: &mut Formatter<'_>, ms: i64, canonical: bool) -> fmt::Result {
    match Iso::of(ms) {
        Some(iso) if !canonical && ms >= 0 => {
            let text = iso.to_string();
            let text = text.strip_suffix(".000Z").map_or(text.clone(), |whole| format!("{whole}Z"));
            write!(f, "{{\"$date\":\"{text}\"}}")
        }
        _ => write!(f, "{{\"$date\":{{\"$numberLong\":\"{ms}\"}}}}"),
    }
}

fn string(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
