//! The one full check of BSON from outside: structure, lengths, UTF-8, nesting. Everything behind it trusts the bytes.

use crate::error::{Code, Error, Result};
use crate::raw::{RawDoc, read_len, value_size};

/// MongoDB's nesting limit for documents a client sends.
pub const DEPTH_MAX: usize = 200;

/// Checks a whole document and lends it.
pub fn validate(bytes: &[u8]) -> Result<RawDoc<'_>> {
    let doc = RawDoc::new(bytes).ok_or_else(|| invalid("the document's length does not agree with its bytes"))?;
    elements(bytes, 1)?;
    Ok(doc)
}

/// Length of the document that starts at `bytes`, if it lies inside them.
pub fn document_len(bytes: &[u8]) -> Result<usize> {
    match read_len(bytes) {
        Some(len) if len >= 5 && len <= bytes.len() => Ok(len),
        _ => Err(invalid("a document's length runs past the message")),
    }
}

fn elements(doc: &[u8], depth: usize) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(Error::new(Code::Overflow, format!("the document is nested deeper than {DEPTH_MAX} levels")));
    }
    let mut rest = &doc[4..doc.len() - 1];
    while let Some(&ty) = rest.first() {
        let name_len = rest[1..].iter().position(|&b| b == 0).ok_or_else(|| invalid("a field name does not end"))?;
        let name = std::str::from_utf8(&rest[1..1 + name_len]).map_err(|_| invalid("a field name is not UTF-8"))?;
        let value = &rest[name_len + 2..];
        let size = value_size(ty, value)
            .filter(|&size| size <= value.len())
            .ok_or_else(|| invalid(&format!("field '{name}' of type {ty:#04x} does not fit into the document")))?;
        check_value(ty, &value[..size], depth, name)?;
        rest = &value[size..];
    }
    Ok(())
}

fn check_value(ty: u8, value: &[u8], depth: usize, name: &str) -> Result<()> {
    let bad = || invalid(&format!("field '{name}' holds a malformed value of type {ty:#04x}"));
    match ty {
        0x02 | 0x0D | 0x0E => string(value).ok_or_else(bad),
        0x03 | 0x04 => {
            RawDoc::new(value).ok_or_else(bad)?;
            elements(value, depth + 1)
        }
        0x08 => (value[0] <= 1).then_some(()).ok_or_else(bad),
        0x0B => value.split(|&b| b == 0).all(|part| std::str::from_utf8(part).is_ok()).then_some(()).ok_or_else(bad),
        0x0C => string(&value[..value.len() - 12]).ok_or_else(bad),
        0x0F => {
            if value.len() < 4 + 5 + 5 {
                return Err(bad());
            }
            let code_len = read_len(&value[4..]).and_then(|n| n.checked_add(4)).ok_or_else(bad)?;
            let code = value.get(4..4 + code_len).ok_or_else(bad)?;
            string(code).ok_or_else(bad)?;
            let scope = &value[4 + code_len..];
            RawDoc::new(scope).ok_or_else(bad)?;
            elements(scope, depth + 1)
        }
        _ => Ok(()),
    }
}

fn string(value: &[u8]) -> Option<()> {
    // At least the NUL; `value_size` has made the slice as long as the prefix says.
    let (last, text) = value.get(4..)?.split_last()?;
    (*last == 0 && std::str::from_utf8(text).is_ok()).then_some(())
}

fn invalid(what: &str) -> Error {
    Error::new(Code::InvalidBSON, format!("Invalid BSON: {what}"))
}
