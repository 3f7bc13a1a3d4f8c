//! Writing BSON straight into the reply buffer: nested documents and arrays are closed when their writer is dropped.

use espalier_value::{DocBuf, Elem, IndexName, RawDoc, Type, Value, ValueRef, push_value};

/// A document being written at the end of a buffer. Complete once dropped.
pub struct DocWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> DocWriter<'a> {
    pub fn begin(out: &'a mut Vec<u8>) -> DocWriter<'a> {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        DocWriter { out, start }
    }

    pub fn append<'v>(&mut self, name: &str, value: impl Into<ValueRef<'v>>) -> &mut Self {
        let value = value.into();
        push_name(self.out, value.ty(), name);
        push_value(self.out, value);
        self
    }

    /// A computed value; a missing one leaves no trace.
    pub fn append_value(&mut self, name: &str, value: &Value<'_>) -> &mut Self {
        match value.as_ref() {
            Some(value) => self.append(name, value),
            None => self,
        }
    }

    /// A count: an int where it fits, as MongoDB's `appendNumber`.
    pub fn append_count(&mut self, name: &str, count: u64) -> &mut Self {
        match i32::try_from(count) {
            Ok(small) => self.append(name, small),
            Err(_) => self.append(name, i64::try_from(count).unwrap_or(i64::MAX)),
        }
    }

    /// A size or counter that is a long whatever its value.
    pub fn append_long(&mut self, name: &str, count: u64) -> &mut Self {
        self.append(name, i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub fn append_date(&mut self, name: &str, ms: i64) -> &mut Self {
        self.append(name, ValueRef::DateTime(ms))
    }

    pub fn append_timestamp(&mut self, name: &str, time: u64) -> &mut Self {
        self.append(name, ValueRef::Timestamp(time))
    }

    /// Copies a field as it stands.
    pub fn append_elem(&mut self, elem: Elem<'_>) -> &mut Self {
        self.out.extend_from_slice(elem.raw());
        self
    }

    /// Copies all fields of a document.
    pub fn append_fields(&mut self, doc: RawDoc<'_>) -> &mut Self {
        self.out.extend_from_slice(doc.iter().rest());
        self
    }

    pub fn doc(&mut self, name: &str) -> DocWriter<'_> {
        push_name(self.out, Type::Document, name);
        DocWriter::begin(self.out)
    }

    pub fn array(&mut self, name: &str) -> ArrayWriter<'_> {
        push_name(self.out, Type::Array, name);
        ArrayWriter { doc: DocWriter::begin(self.out), len: 0 }
    }

    /// Leaves room for a long that is known only later; gives its place for [`DocWriter::fill`].
    pub fn reserve(&mut self, name: &str) -> usize {
        self.append(name, 0i64);
        self.out.len() - 8
    }

    /// Fills in what [`DocWriter::reserve`] left room for.
    pub fn fill(&mut self, place: usize, value: i64) {
        if let Some(bytes) = self.out.get_mut(place..place + 8) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Takes back everything written into this document.
    pub fn reset(&mut self) {
        self.out.truncate(self.start + 4);
    }

    /// Bytes written so far.
    pub fn len_bytes(&self) -> usize {
        self.out.len() - self.start
    }
}

impl Drop for DocWriter<'_> {
    fn drop(&mut self) {
        self.out.push(0);
        let len = (self.out.len() - self.start) as u32;
        self.out[self.start..self.start + 4].copy_from_slice(&len.to_le_bytes());
    }
}

/// An array being written; it writes its own index names.
pub struct ArrayWriter<'a> {
    doc: DocWriter<'a>,
    len: usize,
}

impl ArrayWriter<'_> {
    pub fn push<'v>(&mut self, value: impl Into<ValueRef<'v>>) -> &mut Self {
        let mut name = IndexName::new();
        self.doc.append(name.of(self.len), value);
        self.len += 1;
        self
    }

    pub fn push_doc(&mut self) -> DocWriter<'_> {
        let mut name = IndexName::new();
        let len = self.len;
        self.len += 1;
        self.doc.doc(name.of(len))
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
}

fn push_name(out: &mut Vec<u8>, ty: Type, name: &str) {
    out.push(ty as u8);
    // A NUL would end the name early; names come from us or from validated BSON, which has none.
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

/// The document that `write` writes.
pub fn build(write: impl FnOnce(&mut DocWriter<'_>)) -> DocBuf {
    let mut bytes = Vec::new();
    write(&mut DocWriter::begin(&mut bytes));
    DocBuf::from_bytes(bytes).unwrap_or_default()
}

/// A list of strings as an array.
pub fn strings<S: AsRef<str>>(array: &mut ArrayWriter<'_>, values: impl IntoIterator<Item = S>) {
    for value in values {
        array.push(value.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use espalier_value::validate;

    #[test]
    fn nested_writers_close_what_they_opened() {
        let doc = build(|doc| {
            doc.append("a", 1);
            {
                let mut inner = doc.doc("b");
                inner.append("c", "x");
                let mut array = inner.array("d");
                array.push(1.5);
                array.push_doc().append("e", true);
                array.push_doc();
            }
            let place = doc.reserve("r");
            doc.append_count("n", 7).append_long("l", 7);
            doc.fill(place, 9);
        });
        assert!(validate(doc.as_bytes()).is_ok());
        assert_eq!(
            format!("{doc:?}"),
            r#"{"a": Int32(1), "b": Document({"c": String("x"), "d": Array([Double(1.5), Document({"e": Bool(true)}), Document({})])}), "r": Int64(9), "n": Int32(7), "l": Int64(7)}"#
        );
    }

    #[test]
    fn reset_takes_back_all_fields() {
        let doc = build(|doc| {
            doc.append("a", 1);
            doc.array("x").push(1);
            doc.reset();
            doc.append("ok", 0.0);
        });
        assert_eq!(format!("{doc:?}"), r#"{"ok": Double(0.0)}"#);
    }
}
