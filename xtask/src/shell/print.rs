//! Writes values in one canonical form of mongosh's syntax.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document};

use super::placeholder::placeholder_name;

/// A line longer than this is broken.
const LINE_CHARS_MAX: usize = 110;
/// A string of one character repeated more often than this is written with `.repeat`.
const REPEAT_MIN: usize = 64;

/// The value on one line.
pub fn print(value: &Bson) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// The value, with the elements of long arrays and the fields of long documents on lines of their own.
pub fn print_wrapped(value: &Bson) -> String {
    let mut out = String::new();
    write_wrapped(value, 0, 0, &mut out);
    out
}

fn write_wrapped(value: &Bson, indent: usize, before: usize, out: &mut String) {
    let line = print(value);
    if before + line.chars().count() <= LINE_CHARS_MAX {
        out.push_str(&line);
        return;
    }
    let inner = "  ".repeat(indent + 1);
    match value {
        Bson::Array(items) if !items.is_empty() => {
            out.push_str("[\n");
            for item in items {
                out.push_str(&inner);
                write_wrapped(item, indent + 1, inner.len(), out);
                out.push_str(",\n");
            }
            out.push_str(&"  ".repeat(indent));
            out.push(']');
        }
        Bson::Document(document) if !document.is_empty() => {
            out.push_str("{\n");
            for (key, item) in document {
                out.push_str(&inner);
                let start = out.len();
                write_key(key, out);
                out.push_str(": ");
                let before = inner.len() + out.len() - start;
                write_wrapped(item, indent + 1, before, out);
                out.push_str(",\n");
            }
            out.push_str(&"  ".repeat(indent));
            out.push('}');
        }
        _ => out.push_str(&line),
    }
}

fn write(value: &Bson, out: &mut String) {
    if let Some(name) = placeholder_name(value) {
        out.push_str(&format!("<{name}>"));
        return;
    }
    match value {
        Bson::Double(number) => write_double(*number, out),
        Bson::String(text) => write_string(text, out),
        Bson::Document(document) => write_document(document, out),
        Bson::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write(item, out);
            }
            out.push(']');
        }
        Bson::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Bson::Null => out.push_str("null"),
        Bson::Undefined => out.push_str("undefined"),
        Bson::MinKey => out.push_str("MinKey"),
        Bson::MaxKey => out.push_str("MaxKey"),
        Bson::Int32(number) => out.push_str(&number.to_string()),
        Bson::Int64(number) => out.push_str(&format!("NumberLong({number})")),
        Bson::Decimal128(number) => out.push_str(&format!("NumberDecimal(\"{number}\")")),
        Bson::ObjectId(id) => out.push_str(&format!("ObjectId(\"{id}\")")),
        Bson::DateTime(date) => write_date(*date, out),
        Bson::Timestamp(ts) => out.push_str(&format!("Timestamp({}, {})", ts.time, ts.increment)),
        Bson::Binary(binary) => write_binary(binary, out),
        Bson::RegularExpression(regex) => write_regex(regex.pattern.as_str(), regex.options.as_str(), out),
        Bson::JavaScriptCode(code) => {
            out.push_str("Code(");
            write_string(code, out);
            out.push(')');
        }
        Bson::JavaScriptCodeWithScope(code) => {
            out.push_str("Code(");
            write_string(&code.code, out);
            out.push_str(", ");
            write_document(&code.scope, out);
            out.push(')');
        }
        Bson::Symbol(symbol) => {
            out.push_str("Symbol(");
            write_string(symbol, out);
            out.push(')');
        }
        Bson::DbPointer(_) => write_db_pointer(value, out),
    }
}

fn write_document(document: &Document, out: &mut String) {
    out.push('{');
    for (at, (key, item)) in document.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        write_key(key, out);
        out.push_str(": ");
        write(item, out);
    }
    out.push('}');
}

fn write_key(key: &str, out: &mut String) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if !key.is_empty() && key.chars().all(plain) {
        out.push_str(key);
    } else {
        write_string(key, out);
    }
}

/// A double always shows that it is one: with a point or an exponent.
fn write_double(number: f64, out: &mut String) {
    if number.is_nan() {
        out.push_str("NaN");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        out.push_str(&format!("{number:?}"));
    }
}

fn write_string(text: &str, out: &mut String) {
    let mut chars = text.chars();
    if let Some(first) = chars.next()
        && text.len() >= REPEAT_MIN
        && chars.all(|c| c == first)
    {
        write_quoted(&first.to_string(), out);
        out.push_str(&format!(".repeat({})", text.chars().count()));
        return;
    }
    write_quoted(text, out);
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Dates that ISO 8601 cannot write with four digits of year are written in milliseconds.
fn write_date(date: DateTime, out: &mut String) {
    const YEAR_0: i64 = -62_167_219_200_000;
    const YEAR_10000: i64 = 253_402_300_800_000;
    let millis = date.timestamp_millis();
    match date.try_to_rfc3339_string() {
        Ok(text) if (YEAR_0..YEAR_10000).contains(&millis) => out.push_str(&format!("ISODate(\"{text}\")")),
        _ => out.push_str(&format!("Date({millis})")),
    }
}

fn write_binary(binary: &Binary, out: &mut String) {
    if binary.subtype == BinarySubtype::Uuid
        && let Ok(uuid) = binary.to_uuid()
    {
        out.push_str(&format!("UUID(\"{uuid}\")"));
        return;
    }
    // The crate strips the inner length of the old binary subtype when it reads and adds it when it writes.
    let subtype = u8::from(binary.subtype);
    out.push_str(&format!("BinData({subtype}, \"{}\")", base64(&binary.bytes)));
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().enumerate().fold(0u32, |group, (at, byte)| group | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = DIGITS[(group >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

fn write_regex(pattern: &str, options: &str, out: &mut String) {
    let awkward = pattern.is_empty()
        || pattern.starts_with('*')
        || pattern.contains(['\n', '\r', '/', '[', ']'])
        || pattern.ends_with('\\')
        || !options.chars().all(|c| c.is_ascii_alphabetic());
    if awkward {
        out.push_str("RegExp(");
        write_quoted(pattern, out);
        if !options.is_empty() {
            out.push_str(", ");
            write_quoted(options, out);
        }
        out.push(')');
    } else {
        out.push_str(&format!("/{pattern}/{options}"));
    }
}

/// The crate keeps the parts of a DBPointer to itself, but shows them in its extended JSON.
fn write_db_pointer(value: &Bson, out: &mut String) {
    let Bson::Document(wrapper) = Bson::Document(bson::doc! { "p": value.clone() }) else { return };
    let Ok(bytes) = wrapper.to_vec() else { return };
    // length 4, type 1, "p" 2, then the string's length.
    let read = |at: usize| bytes.get(at..at + 4).and_then(|part| part.try_into().ok()).map(i32::from_le_bytes);
    let length = read(7).and_then(|length| usize::try_from(length).ok()).unwrap_or(1);
    let namespace = bytes.get(11..11 + length - 1).map(String::from_utf8_lossy).unwrap_or_default();
    let id: String = bytes.iter().skip(11 + length).take(12).map(|byte| format!("{byte:02x}")).collect();
    out.push_str("DBPointer(");
    write_quoted(&namespace, out);
    out.push_str(&format!(", ObjectId(\"{id}\"))"));
}
