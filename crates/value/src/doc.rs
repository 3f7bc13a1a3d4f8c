//! Writing BSON: `DocBuf` owns an encoded document and appends to it in place; `ArrayBuf` does so for arrays.

use crate::raw::{Elem, RawArray, RawDoc, ValueRef};
use crate::types::Type;
use crate::value::Value;

/// An owned BSON document, always complete: length and trailing NUL are right after every call.
#[derive(Clone, PartialEq, Eq)]
pub struct DocBuf {
    bytes: Vec<u8>,
}

impl Default for DocBuf {
    fn default() -> DocBuf {
        DocBuf::new()
    }
}

impl std::fmt::Debug for DocBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_raw().fmt(f)
    }
}

impl DocBuf {
    pub fn new() -> DocBuf {
        DocBuf { bytes: vec![5, 0, 0, 0, 0] }
    }

    pub fn with_capacity(bytes: usize) -> DocBuf {
        let mut buf = Vec::with_capacity(bytes.max(5));
        buf.extend_from_slice(&[5, 0, 0, 0, 0]);
        DocBuf { bytes: buf }
    }

    pub fn from_raw(doc: RawDoc<'_>) -> DocBuf {
        DocBuf { bytes: doc.as_bytes().to_vec() }
    }

    /// Takes over encoded bytes if their frame is right.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<DocBuf> {
        RawDoc::new(&bytes)?;
        Some(DocBuf { bytes })
    }

    pub fn as_raw(&self) -> RawDoc<'_> {
        RawDoc::trusted(&self.bytes)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= 5
    }

    pub fn clear(&mut self) {
        self.bytes.truncate(5);
        self.bytes[..5].copy_from_slice(&[5, 0, 0, 0, 0]);
    }

    /// Appends a field. `value` may be anything a `ValueRef` can be made of: `doc.append("n", 1)`.
    pub fn append<'v>(&mut self, name: &str, value: impl Into<ValueRef<'v>>) -> &mut DocBuf {
        self.open();
        push_elem(&mut self.bytes, name, value.into());
        self.close()
    }

    /// Appends a computed value; a missing one leaves no trace.
    pub fn append_value(&mut self, name: &str, value: &Value<'_>) -> &mut DocBuf {
        match value.as_ref() {
            Some(v) => self.append(name, v),
            None => self,
        }
    }

    /// Copies a field as it stands.
    pub fn append_elem(&mut self, elem: Elem<'_>) -> &mut DocBuf {
        self.append_raw(elem.raw())
    }

    /// Copies encoded elements as they stand.
    pub fn append_raw(&mut self, elems: &[u8]) -> &mut DocBuf {
        self.open();
        self.bytes.extend_from_slice(elems);
        self.close()
    }

    /// Copies a value under another name without decoding it.
    pub fn append_renamed(&mut self, name: &str, elem: Elem<'_>) -> &mut DocBuf {
        self.open();
        push_name(&mut self.bytes, elem.type_byte(), name);
        self.bytes.extend_from_slice(elem.value_bytes());
        self.close()
    }

    /// Appends a sub-document written by `fill`.
    pub fn append_doc(&mut self, name: &str, fill: impl FnOnce(&mut DocBuf)) -> &mut DocBuf {
        let mut sub = DocBuf::new();
        fill(&mut sub);
        self.append(name, sub.as_raw())
    }

    /// Appends an array written by `fill`.
    pub fn append_array(&mut self, name: &str, fill: impl FnOnce(&mut ArrayBuf)) -> &mut DocBuf {
        let mut sub = ArrayBuf::new();
        fill(&mut sub);
        self.append(name, sub.as_raw())
    }

    /// Lets `write` append encoded elements straight to the buffer, for writers that nest without a buffer a level.
    pub fn append_with<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        self.open();
        let result = write(&mut self.bytes);
        self.close();
        result
    }

    /// Removes the trailing NUL so that elements can follow.
    fn open(&mut self) {
        self.bytes.pop();
    }

    fn close(&mut self) -> &mut DocBuf {
        self.bytes.push(0);
        let len = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&len.to_le_bytes());
        self
    }
}

/// An owned BSON array that writes its own index names.
#[derive(Clone, Debug, Default)]
pub struct ArrayBuf {
    doc: DocBuf,
    len: usize,
}

impl ArrayBuf {
    pub fn new() -> ArrayBuf {
        ArrayBuf::default()
    }

    /// A copy to append to, with some room.
    pub fn from_raw(array: RawArray<'_>) -> ArrayBuf {
        let mut bytes = Vec::with_capacity(array.as_bytes().len() + 64);
        bytes.extend_from_slice(array.as_bytes());
        ArrayBuf { doc: DocBuf { bytes }, len: array.len() }
    }

    pub fn push<'v>(&mut self, value: impl Into<ValueRef<'v>>) -> &mut ArrayBuf {
        let mut name = IndexName::new();
        self.doc.append(name.of(self.len), value);
        self.len += 1;
        self
    }

    /// Copies an element's value without decoding it.
    pub fn push_elem(&mut self, elem: Elem<'_>) -> &mut ArrayBuf {
        let mut name = IndexName::new();
        self.doc.append_renamed(name.of(self.len), elem);
        self.len += 1;
        self
    }

    /// Pushes a computed value; a missing one becomes null, as in an array literal.
    pub fn push_value(&mut self, value: &Value<'_>) -> &mut ArrayBuf {
        self.push(value.as_ref().unwrap_or(ValueRef::Null))
    }

    pub fn push_doc(&mut self, fill: impl FnOnce(&mut DocBuf)) -> &mut ArrayBuf {
        let mut sub = DocBuf::new();
        fill(&mut sub);
        self.push(sub.as_raw())
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn len_bytes(&self) -> usize {
        self.doc.len_bytes()
    }

    pub fn as_raw(&self) -> RawArray<'_> {
        RawArray::of(self.doc.as_raw())
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.doc.into_bytes()
    }
}

impl<'v> FromIterator<ValueRef<'v>> for ArrayBuf {
    fn from_iter<I: IntoIterator<Item = ValueRef<'v>>>(values: I) -> ArrayBuf {
        let mut array = ArrayBuf::new();
        for value in values {
            array.push(value);
        }
        array
    }
}

/// Formats array indexes as field names without allocating.
pub struct IndexName {
    digits: [u8; 20],
}

impl IndexName {
    #[allow(clippy::new_without_default)]
    pub fn new() -> IndexName {
        IndexName { digits: [0; 20] }
    }

    pub fn of(&mut self, mut index: usize) -> &str {
        let mut at = self.digits.len();
        loop {
            at -= 1;
            self.digits[at] = b'0' + (index % 10) as u8;
            index /= 10;
            if index == 0 {
                break;
            }
        }
        std::str::from_utf8(&self.digits[at..]).unwrap_or("0")
    }
}

/// Opens a document or an array among encoded elements; [`end_nested`] with what this gives closes it.
pub fn begin_nested(out: &mut Vec<u8>, ty: Type, name: &[u8]) -> usize {
    out.push(ty as u8);
    out.extend_from_slice(name);
    out.push(0);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

pub fn end_nested(out: &mut Vec<u8>, start: usize) {
    out.push(0);
    let len = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

fn push_name(out: &mut Vec<u8>, ty: u8, name: &str) {
    out.push(ty);
    // A NUL would end the name early; names with NUL are refused at the rim and by every operator that makes names.
    out.extend_from_slice(name.as_bytes().split(|&b| b == 0).next().unwrap_or_default());
    out.push(0);
}

/// Appends a field, encoded.
pub fn push_elem(out: &mut Vec<u8>, name: &str, value: ValueRef<'_>) {
    push_name(out, value.ty() as u8, name);
    push_value(out, value);
}

/// Appends the encoding of a value, without type or name.
pub fn push_value(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Double(x) => out.extend_from_slice(&x.to_le_bytes()),
        ValueRef::String(s) | ValueRef::JavaScript(s) | ValueRef::Symbol(s) => push_string(out, s),
        ValueRef::Document(d) => out.extend_from_slice(d.as_bytes()),
        ValueRef::Array(a) => out.extend_from_slice(a.as_bytes()),
        ValueRef::Binary(subtype, data) => {
            out.extend_from_slice(&(data.len() as u32).to_le_bytes());
            out.push(subtype);
            out.extend_from_slice(data);
        }
        ValueRef::Undefined | ValueRef::Null | ValueRef::MinKey | ValueRef::MaxKey => {}
        ValueRef::ObjectId(id) => out.extend_from_slice(&id),
        ValueRef::Bool(b) => out.push(b.into()),
        ValueRef::DateTime(ms) => out.extend_from_slice(&ms.to_le_bytes()),
        ValueRef::Regex(pattern, options) => {
            out.extend_from_slice(pattern.as_bytes());
            out.push(0);
            out.extend_from_slice(options.as_bytes());
            out.push(0);
        }
        ValueRef::DbPointer(ns, id) => {
            push_string(out, ns);
            out.extend_from_slice(&id);
        }
        ValueRef::JavaScriptWithScope(code, scope) => {
            let len = 4 + 4 + code.len() + 1 + scope.as_bytes().len();
            out.extend_from_slice(&(len as u32).to_le_bytes());
            push_string(out, code);
            out.extend_from_slice(scope.as_bytes());
        }
        ValueRef::Int32(i) => out.extend_from_slice(&i.to_le_bytes()),
        ValueRef::Timestamp(t) => out.extend_from_slice(&t.to_le_bytes()),
        ValueRef::Int64(i) => out.extend_from_slice(&i.to_le_bytes()),
        ValueRef::Decimal(d) => out.extend_from_slice(&d.to_le_bytes()),
    }
}

fn push_string(out: &mut Vec<u8>, s: &str) {
    out.extend_from_slice(&(s.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(s.as_bytes());
    out.push(0);
}

/// `doc! { "ok": 1.0, "n": n }`: a document from names and anything a `ValueRef` can be made of.
#[macro_export]
macro_rules! doc {
    ($($name:literal : $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut doc = $crate::DocBuf::new();
        $(doc.append($name, $value);)*
        doc
    }};
}
