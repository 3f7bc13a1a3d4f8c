//! A request encoded once, with places in it that are patched for each use.

use bson::oid::ObjectId;
use bson::{Bson, Document};

use crate::client::message;
use crate::error::{Result, err};

/// Stands for an int32, int64 or ObjectId to be patched; no other value of a request looks like it.
pub const INT32_MARK: i32 = 0x7E57_A11C;
pub const INT64_MARK: i64 = 0x7E57_A11C_0BEE_F00D;
pub const OBJECT_ID_MARK: [u8; 12] = *b"\x7e\x57espalier\x00\x01";

/// A complete message whose marks are known by place.
pub struct Template {
    bytes: Vec<u8>,
    int32s: Vec<usize>,
    int64s: Vec<usize>,
    object_ids: Vec<usize>,
}

impl Template {
    pub fn new(command: &Document) -> Result<Template> {
        Template::on(super::DB, command)
    }

    /// For another database.
    pub fn on(db: &str, command: &Document) -> Result<Template> {
        let mut command = command.clone();
        command.insert("$db", db);
        let bytes = message(&command.to_vec()?);
        let int64s = places(&bytes, &INT64_MARK.to_le_bytes());
        let int32s = places(&bytes, &INT32_MARK.to_le_bytes())
            .into_iter()
            .filter(|at| !int64s.iter().any(|other| (*other..other + 8).contains(at)))
            .collect();
        let object_ids = places(&bytes, &OBJECT_ID_MARK);
        Ok(Template { bytes, int32s, int64s, object_ids })
    }

    /// Fails unless the template has as many marks as its user is going to patch.
    pub fn expecting(self, int32s: usize, int64s: usize, object_ids: usize) -> Result<Template> {
        let found = (self.int32s.len(), self.int64s.len(), self.object_ids.len());
        if found == (int32s, int64s, object_ids) { Ok(self) } else { Err(err!("a template with marks {found:?}")) }
    }

    pub fn set_int32(&mut self, number: usize, value: i32) {
        let at = self.int32s[number];
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    pub fn set_int64(&mut self, number: usize, value: i64) {
        let at = self.int64s[number];
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Gives every int64 the same value.
    pub fn set_all_int64s(&mut self, value: i64) {
        (0..self.int64s.len()).for_each(|number| self.set_int64(number, value));
    }

    pub fn set_object_id(&mut self, number: usize, value: [u8; 12]) {
        let at = self.object_ids[number];
        self.bytes[at..at + 12].copy_from_slice(&value);
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The mark of an ObjectId as a value.
pub fn object_id_mark() -> Bson {
    Bson::ObjectId(ObjectId::from_bytes(OBJECT_ID_MARK))
}

fn places(bytes: &[u8], mark: &[u8]) -> Vec<usize> {
    bytes.windows(mark.len()).enumerate().filter(|(_, window)| *window == mark).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{INT32_MARK, INT64_MARK, Template, object_id_mark};
    use bson::{Document, doc, oid::ObjectId};

    #[test]
    fn marks_are_patched_in_place() {
        let command = doc! { "a": INT32_MARK, "b": INT64_MARK, "c": [object_id_mark(), object_id_mark()] };
        let mut template = Template::new(&command).unwrap().expecting(1, 1, 2).unwrap();
        template.set_int32(0, 5);
        template.set_int64(0, 6);
        template.set_object_id(1, [7; 12]);
        let body = Document::from_reader(&template.bytes()[21..]).unwrap();
        assert_eq!(body.get_i32("a").unwrap(), 5);
        assert_eq!(body.get_i64("b").unwrap(), 6);
        assert_eq!(body.get_array("c").unwrap()[1], ObjectId::from_bytes([7; 12]).into());
        assert_eq!(body.get_str("$db").unwrap(), "bench");
    }
}
