//! BSON read in place: `RawDoc` and `RawArray` lend their elements from the bytes they stand on.
//!
//! Bytes from outside pass [`crate::validate()`] once, at the rim. Behind it nothing is checked twice, yet nothing
//! here panics on damaged bytes either: an element that does not fit ends the iteration.

use crate::decimal::Decimal128;
use crate::place;
use crate::types::Type;

/// A BSON document in its encoded form, length prefix and trailing NUL included.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawDoc<'a>(&'a [u8]);

/// A BSON array: a document whose field names are ignored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawArray<'a>(RawDoc<'a>);

/// One `name: value` of a document, still encoded.
#[derive(Clone, Copy)]
pub struct Elem<'a> {
    /// From the type byte to the last byte of the value.
    raw: &'a [u8],
    name_len: usize,
}

/// A value lent from encoded bytes (or a scalar made on the spot). Copying it copies no payload.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    Double(f64),
    String(&'a str),
    Document(RawDoc<'a>),
    Array(RawArray<'a>),
    Binary(u8, &'a [u8]),
    Undefined,
    ObjectId([u8; 12]),
    Bool(bool),
    /// Milliseconds since the Unix epoch.
    DateTime(i64),
    Null,
    /// Pattern and options.
    Regex(&'a str, &'a str),
    DbPointer(&'a str, [u8; 12]),
    JavaScript(&'a str),
    Symbol(&'a str),
    JavaScriptWithScope(&'a str, RawDoc<'a>),
    Int32(i32),
    /// Seconds in the high half, increment in the low half.
    Timestamp(u64),
    Int64(i64),
    Decimal(Decimal128),
    MinKey,
    MaxKey,
}

const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

impl<'a> RawDoc<'a> {
    pub const EMPTY: RawDoc<'static> = RawDoc(EMPTY);

    /// Takes bytes whose length prefix and trailing NUL agree with the slice; the elements are not looked at.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<RawDoc<'a>> {
        let len = read_len(bytes)?;
        (len >= 5 && len == bytes.len() && bytes[len - 1] == 0).then_some(RawDoc(bytes))
    }

    /// Bytes of our own making or from our own checksummed storage; damage reads as an empty document.
    #[inline]
    pub fn trusted(bytes: &'a [u8]) -> RawDoc<'a> {
        RawDoc::new(bytes).unwrap_or(RawDoc(EMPTY))
    }

    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether documents and arrays are nested more than so many levels deep; a document without any has one level.
    pub fn is_deeper_than(self, levels: usize) -> bool {
        // A level takes a type, a name, a length and an end at the least: what is short cannot be deep.
        const LEVEL_BYTES_MIN: usize = 7;
        if self.as_bytes().len() / LEVEL_BYTES_MIN < levels {
            return false;
        }
        levels == 0
            || self.iter().any(|elem| match elem.value() {
                ValueRef::Document(inner) => inner.is_deeper_than(levels - 1),
                ValueRef::Array(inner) => inner.as_doc().is_deeper_than(levels - 1),
                _ => false,
            })
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.len() <= 5 || self.iter().next().is_none()
    }

    #[inline]
    pub fn iter(self) -> Elems<'a> {
        Elems { rest: &self.0[4..self.0.len() - 1] }
    }

    /// The first field of that name.
    #[inline]
    pub fn get(self, name: &str) -> Option<ValueRef<'a>> {
        self.elem(name).map(Elem::value)
    }

    #[inline]
    pub fn elem(self, name: &str) -> Option<Elem<'a>> {
        self.iter().find(|e| e.name_bytes() == name.as_bytes())
    }

    /// Number of fields.
    pub fn count(self) -> usize {
        self.iter().count()
    }

    pub fn get_str(self, name: &str) -> Option<&'a str> {
        match self.get(name) {
            Some(ValueRef::String(s)) => Some(s),
            _ => None,
        }
    }

    pub fn get_doc(self, name: &str) -> Option<RawDoc<'a>> {
        match self.get(name) {
            Some(ValueRef::Document(d)) => Some(d),
            _ => None,
        }
    }

    pub fn first(self) -> Option<Elem<'a>> {
        self.iter().next()
    }
}

impl<'a> IntoIterator for RawDoc<'a> {
    type Item = Elem<'a>;
    type IntoIter = Elems<'a>;
    #[inline]
    fn into_iter(self) -> Elems<'a> {
        self.iter()
    }
}

impl<'a> RawArray<'a> {
    pub const EMPTY: RawArray<'static> = RawArray(RawDoc::EMPTY);

    pub fn new(bytes: &'a [u8]) -> Option<RawArray<'a>> {
        RawDoc::new(bytes).map(RawArray)
    }

    /// Reads a document's bytes as an array (its names are ignored).
    pub fn of(doc: RawDoc<'a>) -> RawArray<'a> {
        RawArray(doc)
    }

    pub fn as_doc(self) -> RawDoc<'a> {
        self.0
    }

    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0.0
    }

    #[inline]
    pub fn iter(self) -> impl Iterator<Item = ValueRef<'a>> + Clone {
        self.0.iter().map(Elem::value)
    }

    pub fn elems(self) -> Elems<'a> {
        self.0.iter()
    }

    pub fn get(self, index: usize) -> Option<ValueRef<'a>> {
        self.0.iter().nth(index).map(Elem::value)
    }

    pub fn len(self) -> usize {
        self.0.count()
    }

    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for RawDoc<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().map(|e| (e.name(), e.value()))).finish()
    }
}

impl std::fmt::Debug for RawArray<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The elements of a document, in order. Kept places (see [`place`]) are passed over.
#[derive(Clone)]
pub struct Elems<'a> {
    rest: &'a [u8],
}

impl<'a> Elems<'a> {
    /// The elements encoded in these bytes, one after the other.
    #[inline]
    pub fn new(elems: &'a [u8]) -> Elems<'a> {
        Elems { rest: elems }
    }

    /// What has not been read yet, as encoded elements.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Elems<'a> {
    type Item = Elem<'a>;

    #[inline]
    fn next(&mut self) -> Option<Elem<'a>> {
        let mut rest = self.rest;
        let (ty, name_len) = loop {
            let ty = *rest.first()?;
            // Names are short: a plain loop beats a vectorised search that must be set up first.
            let name_len = rest[1..].iter().position(|&b| b == 0)?;
            if ty != place::TYPE {
                break (ty, name_len);
            }
            rest = &rest[name_len + 2..];
        };
        let at = name_len + 2;
        let size = value_size(ty, &rest[at..])?;
        let end = at + size;
        if end > rest.len() {
            self.rest = &[];
            return None;
        }
        self.rest = &rest[end..];
        Some(Elem { raw: &rest[..end], name_len })
    }
}

impl<'a> Elem<'a> {
    #[inline]
    pub fn name_bytes(self) -> &'a [u8] {
        &self.raw[1..1 + self.name_len]
    }

    pub fn name(self) -> &'a str {
        text(self.name_bytes())
    }

    pub fn type_byte(self) -> u8 {
        self.raw[0]
    }

    pub fn ty(self) -> Type {
        Type::from_byte(self.raw[0]).unwrap_or(Type::Undefined)
    }

    /// Type byte, name and value as encoded: appending it to a document copies the field.
    #[inline]
    pub fn raw(self) -> &'a [u8] {
        self.raw
    }

    #[inline]
    pub fn value_bytes(self) -> &'a [u8] {
        &self.raw[self.name_len + 2..]
    }

    #[inline]
    pub fn value(self) -> ValueRef<'a> {
        ValueRef::decode(self.raw[0], self.value_bytes())
    }
}

impl<'a> ValueRef<'a> {
    /// Reads the encoded value of a type; `bytes` must be exactly its encoding. Damage reads as `Undefined`.
    #[inline]
    pub fn decode(ty: u8, bytes: &'a [u8]) -> ValueRef<'a> {
        decode(ty, bytes).unwrap_or(ValueRef::Undefined)
    }

    #[inline]
    pub fn ty(self) -> Type {
        match self {
            ValueRef::Double(_) => Type::Double,
            ValueRef::String(_) => Type::String,
            ValueRef::Document(_) => Type::Document,
            ValueRef::Array(_) => Type::Array,
            ValueRef::Binary(..) => Type::Binary,
            ValueRef::Undefined => Type::Undefined,
            ValueRef::ObjectId(_) => Type::ObjectId,
            ValueRef::Bool(_) => Type::Bool,
            ValueRef::DateTime(_) => Type::DateTime,
            ValueRef::Null => Type::Null,
            ValueRef::Regex(..) => Type::Regex,
            ValueRef::DbPointer(..) => Type::DbPointer,
            ValueRef::JavaScript(_) => Type::JavaScript,
            ValueRef::Symbol(_) => Type::Symbol,
            ValueRef::JavaScriptWithScope(..) => Type::JavaScriptWithScope,
            ValueRef::Int32(_) => Type::Int32,
            ValueRef::Timestamp(_) => Type::Timestamp,
            ValueRef::Int64(_) => Type::Int64,
            ValueRef::Decimal(_) => Type::Decimal,
            ValueRef::MinKey => Type::MinKey,
            ValueRef::MaxKey => Type::MaxKey,
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, ValueRef::Double(_) | ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Decimal(_))
    }

    /// Null or undefined, which most operators treat alike.
    #[inline]
    pub fn is_nullish(self) -> bool {
        matches!(self, ValueRef::Null | ValueRef::Undefined)
    }

    pub fn as_str(self) -> Option<&'a str> {
        match self {
            ValueRef::String(s) | ValueRef::Symbol(s) => Some(s),
            _ => None,
        }
    }

    #[inline]
    pub fn as_doc(self) -> Option<RawDoc<'a>> {
        match self {
            ValueRef::Document(d) => Some(d),
            _ => None,
        }
    }

    #[inline]
    pub fn as_array(self) -> Option<RawArray<'a>> {
        match self {
            ValueRef::Array(a) => Some(a),
            _ => None,
        }
    }
}

fn decode(ty: u8, b: &[u8]) -> Option<ValueRef<'_>> {
    Some(match ty {
        0x01 => ValueRef::Double(f64::from_le_bytes(array(b)?)),
        0x02 => ValueRef::String(string(b)?),
        0x03 => ValueRef::Document(RawDoc::new(b)?),
        0x04 => ValueRef::Array(RawArray(RawDoc::new(b)?)),
        0x05 => binary(b)?,
        0x06 => ValueRef::Undefined,
        0x07 => ValueRef::ObjectId(array(b)?),
        0x08 => ValueRef::Bool(*b.first()? != 0),
        0x09 => ValueRef::DateTime(i64::from_le_bytes(array(b)?)),
        0x0A => ValueRef::Null,
        0x0B => {
            let split = b.iter().position(|&x| x == 0)?;
            let options = b.get(split + 1..b.len().checked_sub(1)?)?;
            ValueRef::Regex(text(&b[..split]), text(options))
        }
        0x0C => {
            let at = b.len().checked_sub(12)?;
            ValueRef::DbPointer(string(&b[..at])?, array(&b[at..])?)
        }
        0x0D => ValueRef::JavaScript(string(b)?),
        0x0E => ValueRef::Symbol(string(b)?),
        0x0F => {
            let code_len = read_len(b.get(4..)?)?.checked_add(4)?;
            let code = b.get(4..code_len.checked_add(4)?)?;
            ValueRef::JavaScriptWithScope(string(code)?, RawDoc::new(b.get(4 + code_len..)?)?)
        }
        0x10 => ValueRef::Int32(i32::from_le_bytes(array(b)?)),
        0x11 => ValueRef::Timestamp(u64::from_le_bytes(array(b)?)),
        0x12 => ValueRef::Int64(i64::from_le_bytes(array(b)?)),
        0x13 => ValueRef::Decimal(Decimal128::from_le_bytes(array(b)?)),
        0x7F => ValueRef::MaxKey,
        0xFF => ValueRef::MinKey,
        _ => return None,
    })
}

fn binary(b: &[u8]) -> Option<ValueRef<'_>> {
    let (subtype, data) = (*b.get(4)?, b.get(5..)?);
    // Subtype 2 carries its length once more inside; that inner length is part of the data, as in MongoDB.
    Some(ValueRef::Binary(subtype, data))
}

#[inline]
fn array<const N: usize>(b: &[u8]) -> Option<[u8; N]> {
    b.get(..N)?.try_into().ok()
}

fn string(b: &[u8]) -> Option<&str> {
    Some(text(b.get(4..b.len().checked_sub(1)?)?))
}

/// Strings were checked at the rim; bytes that still are not UTF-8 read up to the damage.
fn text(b: &[u8]) -> &str {
    match std::str::from_utf8(b) {
        Ok(s) => s,
        Err(e) => std::str::from_utf8(&b[..e.valid_up_to()]).unwrap_or_default(),
    }
}

#[inline]
pub(crate) fn read_len(b: &[u8]) -> Option<usize> {
    usize::try_from(i32::from_le_bytes(array(b)?)).ok()
}

/// The encoded size of a value that starts at `b`, or `None` if the type is unknown or a length is impossible.
#[inline]
pub(crate) fn value_size(ty: u8, b: &[u8]) -> Option<usize> {
    Some(match ty {
        0x10 => 4,
        0x01 | 0x09 | 0x11 | 0x12 => 8,
        0x02 | 0x0D | 0x0E => read_len(b)?.checked_add(4)?,
        0x03 | 0x04 | 0x0F => read_len(b)?,
        0x07 => 12,
        0x08 => 1,
        0x05 => read_len(b)?.checked_add(5)?,
        0x06 | 0x0A | 0x7F | 0xFF => 0,
        0x0B => {
            let first = b.iter().position(|&x| x == 0)? + 1;
            first + b[first..].iter().position(|&x| x == 0)? + 1
        }
        0x0C => read_len(b)?.checked_add(16)?,
        0x13 => 16,
        _ => return None,
    })
}
