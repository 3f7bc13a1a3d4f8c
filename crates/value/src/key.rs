//! Order-preserving keys: `memcmp` of two encodings is BSON's order of the values, equal exactly where they compare
//! equal (so 1, 1.0 and NumberLong(1) are one key). Serves indexes, sorting, grouping and sets.
//!
//! A value is its type's rank, then a body that no other body of that rank is a prefix of. A field that sorts
//! descending has every byte of its encoding inverted. What the key cannot tell (was it 1 or 1.0?) goes into
//! [`Types`], kept beside the key where the value must be had back.
//!
//! Under a collation a string's place is taken by the key that the collation gives it; the string itself cannot be had
//! back from that.

use crate::collation::Collation;
use crate::decimal::Decimal128;
use crate::doc::{ArrayBuf, DocBuf};
use crate::number::Number;
use crate::raw::{RawArray, RawDoc, ValueRef};
use crate::types::Type;
use crate::value::Value;

mod number;

/// Appends the encoding of `value`.
#[inline]
pub fn encode(out: &mut Vec<u8>, value: ValueRef<'_>) {
    collated(out, value, None);
}

/// As [`encode`], with every string in the value replaced by its key under the collation.
#[inline]
pub(crate) fn collated(out: &mut Vec<u8>, value: ValueRef<'_>, collation: Option<&Collation>) {
    out.push(value.ty().rank());
    body(out, value, collation);
}

/// Appends the encoding of `value`, inverted if `descending`.
#[inline]
pub fn encode_directed(out: &mut Vec<u8>, value: ValueRef<'_>, descending: bool) {
    let start = out.len();
    encode(out, value);
    if descending {
        invert(&mut out[start..]);
    }
}

/// The encoding of one value on its own.
pub fn of(value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    encode(&mut out, value);
    out
}

pub fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|b| *b = !*b);
}

fn body(out: &mut Vec<u8>, value: ValueRef<'_>, collation: Option<&Collation>) {
    match value {
        ValueRef::String(s) | ValueRef::Symbol(s) => match collation {
            None => escaped(out, s.as_bytes()),
            Some(collation) => escaped(out, collation.key(s).as_bytes()),
        },
        ValueRef::JavaScript(s) => escaped(out, s.as_bytes()),
        ValueRef::Document(d) => document(out, d, collation),
        ValueRef::Array(a) => array(out, a, collation),
        ValueRef::Binary(subtype, data) => {
            out.extend_from_slice(&(data.len() as u32).to_be_bytes());
            out.push(subtype);
            out.extend_from_slice(data);
        }
        ValueRef::ObjectId(id) => out.extend_from_slice(&id),
        ValueRef::Bool(b) => out.push(b.into()),
        ValueRef::DateTime(ms) => out.extend_from_slice(&((ms as u64) ^ (1 << 63)).to_be_bytes()),
        ValueRef::Timestamp(t) => out.extend_from_slice(&t.to_be_bytes()),
        ValueRef::Regex(pattern, options) => {
            escaped(out, pattern.as_bytes());
            escaped(out, options.as_bytes());
        }
        ValueRef::DbPointer(ns, id) => {
            out.extend_from_slice(&(ns.len() as u32).to_be_bytes());
            out.extend_from_slice(ns.as_bytes());
            out.extend_from_slice(&id);
        }
        ValueRef::JavaScriptWithScope(code, scope) => {
            escaped(out, code.as_bytes());
            document(out, scope, collation);
        }
        ValueRef::Double(_) | ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Decimal(_) => {
            if let Some(n) = Number::of(value) {
                number::encode(out, n);
            }
        }
        ValueRef::Null | ValueRef::Undefined | ValueRef::MinKey | ValueRef::MaxKey => {}
    }
}

/// Ranks are above 0, so a 0 ends the fields and sorts a shorter document first.
fn document(out: &mut Vec<u8>, doc: RawDoc<'_>, collation: Option<&Collation>) {
    for elem in doc {
        let value = elem.value();
        out.push(value.ty().rank());
        // Names hold no NUL, so a NUL ends them in order.
        out.extend_from_slice(elem.name_bytes());
        out.push(0);
        body(out, value, collation);
    }
    out.push(0);
}

fn array(out: &mut Vec<u8>, array: RawArray<'_>, collation: Option<&Collation>) {
    array.iter().for_each(|value| collated(out, value, collation));
    out.push(0);
}

/// NUL is written 00 FF and the end 00 00, so that a prefix sorts first.
fn escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for (i, part) in bytes.split(|&b| b == 0).enumerate() {
        if i > 0 {
            out.extend_from_slice(&[0, 0xFF]);
        }
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&[0, 0]);
}

/// In the place of a type: the null in the key stands for a missing field.
const MISSING: u8 = 0;

/// What keys leave out: the exact type (and a decimal's exact digits) of each number and string, in order of writing.
/// Empty where the defaults (int32 for whole numbers that fit, double for the others, string) are right.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
pub struct Types {
    bytes: Vec<u8>,
    /// True if some value differs from what decoding without types would yield.
    needed: bool,
}

impl Types {
    pub fn new() -> Types {
        Types::default()
    }

    /// Notes what the encoding of `value` leaves out. Call it in the order of the values in the key.
    pub fn note(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Int32(_) => self.bytes.push(Type::Int32 as u8),
            ValueRef::Int64(_) => self.push(Type::Int64),
            ValueRef::Double(x) => {
                self.bytes.push(Type::Double as u8);
                // A whole double reads back as an int, and -0.0 as 0, unless told.
                self.needed |= Number::Double(x).as_exact_i64().is_some() || x.is_nan();
                if x == 0.0 {
                    self.bytes.push(x.is_sign_negative().into());
                }
            }
            ValueRef::Decimal(d) => {
                self.push(Type::Decimal);
                self.bytes.extend_from_slice(&d.to_le_bytes());
            }
            ValueRef::String(_) => self.bytes.push(Type::String as u8),
            ValueRef::Null => self.bytes.push(Type::Null as u8),
            ValueRef::Symbol(_) => self.push(Type::Symbol),
            ValueRef::Document(d) => d.iter().for_each(|e| self.note(e.value())),
            ValueRef::Array(a) => a.iter().for_each(|v| self.note(v)),
            ValueRef::JavaScriptWithScope(_, d) => d.iter().for_each(|e| self.note(e.value())),
            _ => {}
        }
    }

    /// A field that is not there, written as null.
    pub fn note_missing(&mut self) {
        self.bytes.push(MISSING);
        self.needed = true;
    }

    fn push(&mut self, ty: Type) {
        self.bytes.push(ty as u8);
        self.needed = true;
    }

    /// The bytes to store; empty if decoding needs none.
    pub fn as_bytes(&self) -> &[u8] {
        if self.needed { &self.bytes } else { &[] }
    }
}

/// Reads keys back into values. `types` is what [`Types::as_bytes`] gave for the same values.
pub struct Decoder<'k> {
    key: &'k [u8],
    types: &'k [u8],
    /// XOR-ed onto each byte read: 0xFF inside a descending field.
    mask: u8,
    has_types: bool,
}

impl<'k> Decoder<'k> {
    pub fn new(key: &'k [u8], types: &'k [u8]) -> Decoder<'k> {
        Decoder { key, types, mask: 0, has_types: !types.is_empty() }
    }

    /// The next value, or `None` at the end or at bytes that are no key.
    pub fn next(&mut self, descending: bool) -> Option<Value<'static>> {
        self.mask = if descending { 0xFF } else { 0 };
        let rank = self.byte()?;
        self.value(rank)
    }

    /// Bytes not read yet.
    pub fn rest(&self) -> &'k [u8] {
        self.key
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.key.split_first()?;
        self.key = rest;
        Some(*first ^ self.mask)
    }

    fn take(&mut self, n: usize) -> Option<Vec<u8>> {
        let (head, rest) = self.key.split_at_checked(n)?;
        self.key = rest;
        Some(head.iter().map(|b| b ^ self.mask).collect())
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn ty(&mut self) -> Option<u8> {
        let (first, rest) = self.types.split_first()?;
        self.types = rest;
        Some(*first)
    }

    fn text(&mut self) -> Option<String> {
        let mut out = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0 => return String::from_utf8(out).ok(),
                    _ => out.push(0),
                },
                b => out.push(b),
            }
        }
    }

    fn value(&mut self, rank: u8) -> Option<Value<'static>> {
        Some(match rank {
            1 => ValueRef::MinKey.into(),
            3 => ValueRef::Undefined.into(),
            5 if self.has_types && self.ty()? == MISSING => Value::Missing,
            5 => Value::NULL,
            10 => self.number()?.to_value().into(),
            15 => {
                let text = self.text()?;
                let symbol = self.has_types && self.ty()? == Type::Symbol as u8;
                if symbol { Value::own(ValueRef::Symbol(&text)) } else { Value::string(text) }
            }
            20 => Value::document(self.document()?),
            25 => {
                let mut array = ArrayBuf::new();
                loop {
                    match self.byte()? {
                        0 => break Value::array(array),
                        rank => {
                            let value = self.value(rank)?;
                            array.push_value(&value);
                        }
                    }
                }
            }
            30 => {
                let len = u32::from_be_bytes(self.fixed()?) as usize;
                let subtype = self.byte()?;
                let data = self.take(len)?;
                Value::own(ValueRef::Binary(subtype, &data))
            }
            35 => ValueRef::ObjectId(self.fixed()?).into(),
            40 => ValueRef::Bool(self.byte()? != 0).into(),
            45 => ValueRef::DateTime((u64::from_be_bytes(self.fixed()?) ^ (1 << 63)) as i64).into(),
            47 => ValueRef::Timestamp(u64::from_be_bytes(self.fixed()?)).into(),
            50 => {
                let (pattern, options) = (self.text()?, self.text()?);
                Value::own(ValueRef::Regex(&pattern, &options))
            }
            55 => {
                let len = u32::from_be_bytes(self.fixed()?) as usize;
                let ns = String::from_utf8(self.take(len)?).ok()?;
                let id = self.fixed()?;
                Value::own(ValueRef::DbPointer(&ns, id))
            }
            60 => {
                let code = self.text()?;
                Value::own(ValueRef::JavaScript(&code))
            }
            65 => {
                let (code, scope) = (self.text()?, self.document()?);
                Value::own(ValueRef::JavaScriptWithScope(&code, scope.as_raw()))
            }
            127 => ValueRef::MaxKey.into(),
            _ => return None,
        })
    }

    fn document(&mut self) -> Option<DocBuf> {
        let mut doc = DocBuf::new();
        loop {
            let rank = self.byte()?;
            if rank == 0 {
                return Some(doc);
            }
            let mut name = Vec::new();
            loop {
                match self.byte()? {
                    0 => break,
                    b => name.push(b),
                }
            }
            let value = self.value(rank)?;
            doc.append_value(std::str::from_utf8(&name).ok()?, &value);
        }
    }

    fn number(&mut self) -> Option<Number> {
        let mask = self.mask;
        let (plain, used) = number::decode(self.key, mask)?;
        self.key = self.key.get(used..)?;
        if !self.has_types {
            return Some(plain);
        }
        Some(match Type::from_byte(self.ty()?)? {
            Type::Int32 => Number::Int32(plain.as_exact_i64()?.try_into().ok()?),
            Type::Int64 => Number::Int64(plain.as_exact_i64()?),
            Type::Double => {
                let x = plain.to_f64();
                if x == 0.0 { Number::Double(if self.ty()? == 1 { -0.0 } else { 0.0 }) } else { Number::Double(x) }
            }
            Type::Decimal => {
                let (digits, rest) = self.types.split_at_checked(16)?;
                self.types = rest;
                Number::Decimal(Decimal128::from_le_bytes(digits.try_into().ok()?))
            }
            _ => return None,
        })
    }
}

/// Length of the encoded value at the start of `key`, which was written inverted if `descending`. `None` if the
/// bytes are no key.
pub fn encoded_len(key: &[u8], descending: bool) -> Option<usize> {
    let mask = if descending { 0xFF } else { 0 };
    let rank = key.first()? ^ mask;
    Some(1 + body_len(rank, key.get(1..)?, mask)?)
}

fn body_len(rank: u8, key: &[u8], mask: u8) -> Option<usize> {
    Some(match rank {
        1 | 3 | 5 | 127 => 0,
        10 => number::encoded_len(key, mask)?,
        15 | 60 => escaped_len(key, mask)?,
        20 => document_len(key, mask)?,
        25 => {
            let mut at = 0;
            loop {
                match key.get(at)? ^ mask {
                    0 => break at + 1,
                    rank => at += 1 + body_len(rank, key.get(at + 1..)?, mask)?,
                }
            }
        }
        30 => length(key, mask)?.checked_add(5)?,
        35 => 12,
        40 => 1,
        45 | 47 => 8,
        50 => {
            let pattern = escaped_len(key, mask)?;
            pattern + escaped_len(key.get(pattern..)?, mask)?
        }
        55 => length(key, mask)?.checked_add(16)?,
        65 => {
            let code = escaped_len(key, mask)?;
            code + document_len(key.get(code..)?, mask)?
        }
        _ => return None,
    })
}

fn length(key: &[u8], mask: u8) -> Option<usize> {
    let bytes: [u8; 4] = key.get(..4)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(bytes.map(|b| b ^ mask))).ok()
}

fn escaped_len(key: &[u8], mask: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        at += key.get(at..)?.iter().position(|b| b ^ mask == 0)? + 2;
        if key.get(at - 1)? ^ mask == 0 {
            return Some(at);
        }
    }
}

fn document_len(key: &[u8], mask: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        let rank = key.get(at)? ^ mask;
        at += 1;
        if rank == 0 {
            return Some(at);
        }
        at += key.get(at..)?.iter().position(|b| b ^ mask == 0)? + 1;
        at += body_len(rank, key.get(at..)?, mask)?;
    }
}
