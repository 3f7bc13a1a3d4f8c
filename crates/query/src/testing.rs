//! For tests only: documents from text, as one writes them in a shell.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use espalier_value::{ArrayBuf, DocBuf, RawArray, Result, Value, ValueRef};

use crate::stage::{Spill, SpillFile};
use crate::stream::Stream;

/// `{a: 1, "b.c": [1.5, null, "x"]}`: whole numbers are int32, or int64 where they must be.
pub(crate) fn doc(text: &str) -> DocBuf {
    let mut reader = Reader { text: text.as_bytes(), at: 0 };
    let doc = reader.document();
    reader.space();
    assert_eq!(reader.at, text.len(), "text after the document: {text}");
    doc
}

pub(crate) fn array(text: &str) -> ArrayBuf {
    let wrapped = doc(&format!("{{a: {text}}}"));
    wrapped.as_raw().get("a").and_then(ValueRef::as_array).unwrap().iter().collect()
}

pub(crate) fn docs(text: &str) -> Vec<DocBuf> {
    array(text).as_raw().iter().map(|v| DocBuf::from_raw(v.as_doc().unwrap())).collect()
}

/// All documents of a stream, as an array.
pub(crate) fn drain(mut stream: Box<dyn Stream>) -> Result<ArrayBuf> {
    let mut all = ArrayBuf::new();
    while stream.advance()? {
        all.push(stream.doc());
    }
    Ok(all)
}

pub(crate) fn same(found: RawArray<'_>, expected: &str) {
    let expected = array(expected);
    assert_eq!(found.as_bytes(), expected.as_raw().as_bytes(), "found {found:?}, expected {:?}", expected.as_raw());
}

/// Temporary files in memory, and how many were made.
#[derive(Debug, Default)]
pub(crate) struct MemorySpill {
    pub files: Arc<AtomicUsize>,
}

impl Spill for MemorySpill {
    fn create(&self) -> Result<Box<dyn SpillFile>> {
        self.files.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(MemoryFile { bytes: Vec::new(), at: 0 }))
    }
}

struct MemoryFile {
    bytes: Vec<u8>,
    at: usize,
}

impl SpillFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn rewind(&mut self) -> Result<()> {
        self.at = 0;
        Ok(())
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        // Less than asked for, as a file may give.
        let count = out.len().min(self.bytes.len() - self.at).min(7000);
        out[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> u8 {
        self.space();
        *self.text.get(self.at).unwrap()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn word(&mut self) -> String {
        self.space();
        let quote = self.text[self.at];
        let quoted = matches!(quote, b'"' | b'\'');
        self.at += usize::from(quoted);
        let start = self.at;
        let ends = |b: u8| if quoted { b == quote } else { b",:{}[] \n".contains(&b) };
        while self.at < self.text.len() && !ends(self.text[self.at]) {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.text[start..self.at]).unwrap().to_string();
        self.at += usize::from(quoted);
        word
    }

    fn document(&mut self) -> DocBuf {
        let mut doc = DocBuf::new();
        assert!(self.take(b'{'));
        while !self.take(b'}') {
            let name = self.word();
            assert!(self.take(b':'));
            let value = self.value();
            doc.append_value(&name, &value);
            self.take(b',');
        }
        doc
    }

    fn value(&mut self) -> Value<'static> {
        match self.peek() {
            b'{' => Value::document(self.document()),
            b'[' => {
                self.at += 1;
                let mut array = ArrayBuf::new();
                while !self.take(b']') {
                    let value = self.value();
                    array.push_value(&value);
                    self.take(b',');
                }
                Value::array(array)
            }
            b'"' | b'\'' => Value::string(self.word()),
            _ => match self.word().as_str() {
                "null" => Value::NULL,
                "true" => true.into(),
                "false" => false.into(),
                number => match (number.parse::<i32>(), number.parse::<i64>()) {
                    (Ok(int), _) => int.into(),
                    (_, Ok(long)) => long.into(),
                    _ => number.parse::<f64>().unwrap().into(),
                },
            },
        }
    }
}
