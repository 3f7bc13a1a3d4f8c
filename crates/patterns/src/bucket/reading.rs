//! One reading: which bucket it belongs to, and how it is written in one.

use espalier_value::path::Part;
use espalier_value::{DocBuf, Error, Path, RawDoc, Result, ValueRef, key};

use super::Bucket;
use crate::bson::value_at;

/// Where a reading belongs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Group {
    /// The `by` values as keys: values that are equal are in one bucket, whatever their types.
    by: Vec<u8>,
    start_ms: Option<i64>,
}

impl Group {
    /// As one key.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.by.clone();
        out.extend_from_slice(&self.start_ms.unwrap_or(0).to_be_bytes());
        out
    }
}

impl Bucket {
    /// The group of a reading; an error if it cannot have one.
    pub(super) fn group(&self, reading: RawDoc<'_>) -> Result<Group> {
        let start_ms = self.start_of(reading)?;
        let mut by = Vec::new();
        for path in &self.by {
            key::encode(&mut by, self.single(reading, path, "by")?.unwrap_or(ValueRef::Null));
        }
        for path in &self.key {
            self.single(reading, path, "key")?;
        }
        Ok(Group { by, start_ms })
    }

    fn start_of(&self, reading: RawDoc<'_>) -> Result<Option<i64>> {
        let Some(time) = &self.time else { return Ok(None) };
        match value_at(reading, time.path.parts()) {
            Some(ValueRef::DateTime(at_ms)) => Ok(Some(time.every.window(at_ms).0)),
            other => {
                let is = other.map_or("is missing", |value| value.ty().name());
                Err(Error::bad_value(format!(
                    "'{}' must be present and contain a valid BSON UTC datetime value: the pattern 'bucket' divides \
                     the collection by it (here: {is})",
                    time.path
                )))
            }
        }
    }

    /// The instant of a reading or of an item; 0 without `time`.
    pub(super) fn at_ms(&self, reading: RawDoc<'_>) -> i64 {
        match self.time.as_ref().and_then(|time| value_at(reading, time.path.parts())) {
            Some(ValueRef::DateTime(at_ms)) => at_ms,
            _ => 0,
        }
    }

    /// A value that tells readings apart; arrays, and what lies in one, cannot.
    fn single<'a>(&self, reading: RawDoc<'a>, path: &Path, option: &str) -> Result<Option<ValueRef<'a>>> {
        match walk(reading, path.parts()) {
            Ok(value) => Ok(value),
            Err(()) => Err(Error::bad_value(format!(
                "'{path}' must not be an array or lie in one: it is in '{option}' of the pattern 'bucket'"
            ))),
        }
    }

    /// The key of a reading; empty if none is declared.
    pub(super) fn key_of(&self, reading: RawDoc<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        for path in &self.key {
            key::encode(&mut out, value_at(reading, path.parts()).unwrap_or(ValueRef::Null));
        }
        out
    }

    /// `by` fields at the top of a reading: those that are not repeated in each of a bucket's readings.
    fn shared(&self) -> impl Iterator<Item = &str> {
        self.by.iter().filter(|path| path.is_single()).map(Path::as_str)
    }

    /// Writes the reading of an item of a bucket.
    pub(super) fn put_together(&self, bucket: RawDoc<'_>, item: RawDoc<'_>, whole: bool, out: &mut DocBuf) {
        out.clear();
        let mut elems = item.iter();
        if !whole {
            let rest = elems.clone();
            match elems.next().filter(|first| first.name_bytes() == b"_id") {
                Some(id) => {
                    out.append_elem(id);
                }
                None => elems = rest,
            }
            for elem in self.shared().filter_map(|name| bucket.elem(name)) {
                out.append_elem(elem);
            }
        }
        out.append_raw(elems.rest());
    }

    /// The item for a reading in a bucket, and whether it is the reading as it came: `by` fields are left out if they can
    /// be put back exactly as they were.
    pub(super) fn take_apart(&self, bucket: RawDoc<'_>, reading: RawDoc<'_>, scratch: &mut DocBuf) -> (DocBuf, bool) {
        let mut item = DocBuf::with_capacity(reading.as_bytes().len());
        for elem in reading {
            if !self.shared().any(|name| name.as_bytes() == elem.name_bytes()) {
                item.append_elem(elem);
            }
        }
        self.put_together(bucket, item.as_raw(), false, scratch);
        if scratch.as_bytes() == reading.as_bytes() { (item, false) } else { (DocBuf::from_raw(reading), true) }
    }
}

/// The value at a path; an error if there is an array on the way or at its end.
fn walk<'a>(doc: RawDoc<'a>, parts: &[Part]) -> Result<Option<ValueRef<'a>>, ()> {
    let Some((first, rest)) = parts.split_first() else { return Ok(None) };
    match (doc.get(first.name()), rest) {
        (Some(ValueRef::Array(_)), _) => Err(()),
        (value, []) => Ok(value),
        (Some(ValueRef::Document(inner)), rest) => walk(inner, rest),
        _ => Ok(None),
    }
}
