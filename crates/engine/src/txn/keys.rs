//! The keys that a document has in the indexes of its collection, and the errors that they can be.

use espalier_query::Context;
use espalier_store::IndexKind;
use espalier_value::key::Decoder;
use espalier_value::{ArrayBuf, Code, DocBuf, Error, RawDoc, Result, ValueRef, collation};

use crate::catalog::{Collection, Index};
use crate::index::entry::split;
use crate::index::{Entry, Keys, keys, wildcard};
use crate::view::View;

/// The `_id` of a document.
pub fn id_of(doc: RawDoc<'_>) -> ValueRef<'_> {
    doc.get("_id").unwrap_or(ValueRef::Null)
}

/// The keys of a document in an index; none if a partial index leaves it out.
pub fn index_keys(index: &Index, doc: RawDoc<'_>) -> Result<Keys> {
    if let Some(partial) = &index.spec.partial
        && !partial.matches(doc, &Context::default())?
    {
        return Ok(Keys::default());
    }
    if index.spec.is_wildcard() { Ok(wildcard::keys(&index.spec, doc)) } else { keys::keys(&index.spec, doc) }
}

/// Refuses entries past the limit of this server.
pub fn check_keys(index: &Index, keys: &Keys, bytes_max: usize) -> Result<()> {
    let Some((long, _)) = keys.entries.iter().find(|(key, _)| key.len() > bytes_max) else { return Ok(()) };
    let message = format!(
        "key too large to index: an entry of index {} has {} bytes, the limit is {bytes_max} (--max-index-key-bytes)",
        index.spec.name,
        long.len()
    );
    Err(Error::new(Code(17280), message))
}

/// The error that inserting this document would be because of a unique key, if any.
pub fn taken(view: &View, collection: &Collection, doc: RawDoc<'_>) -> Result<Option<Error>> {
    for index in collection.indexes.iter().filter(|index| index.spec.unique) {
        let entries: Vec<Entry> = if index.spec.is_id() {
            vec![Entry::of_id(index.id, id_of(doc), index.spec.collator(), 0)]
        } else {
            let keys = index_keys(index, doc)?;
            keys.entries.iter().map(|(key, types)| Entry::new(index.id, &index.spec, key, types, 0)).collect()
        };
        for entry in entries {
            if view.get(&entry.key)?.is_some() {
                let (encoded, _, types) = split(true, &entry.key, &entry.value);
                return Ok(Some(duplicate_key(collection, index, encoded, types)));
            }
        }
    }
    Ok(None)
}

/// MongoDB's 11000, with the key that was there already.
pub fn duplicate_key(collection: &Collection, index: &Index, encoded: &[u8], types: &[u8]) -> Error {
    let mut decoder = Decoder::new(encoded, types);
    let mut key_value = DocBuf::new();
    let mut encoded_as_hex = ArrayBuf::new();
    for part in &index.spec.parts {
        let value = decoder.next(part.kind == IndexKind::Descending).unwrap_or_default();
        // A collated key is no text that anybody could read.
        match (&index.spec.collation, value.as_ref()) {
            (Some(_), Some(ValueRef::String(key))) => {
                key_value.append(part.path.as_str(), &collation::hex(key));
                encoded_as_hex.push(true);
            }
            _ => {
                key_value.append(part.path.as_str(), value.or_null());
                encoded_as_hex.push(false);
            }
        }
    }
    let mut info = DocBuf::new();
    info.append("keyPattern", index.spec.key()).append("keyValue", &key_value);
    let mut under = String::new();
    if let Some(collation) = &index.spec.collation {
        let listed = collation.listed();
        under = format!(" collation: {}", listed.as_raw());
        if encoded_as_hex.as_raw().iter().any(|hex| matches!(hex, ValueRef::Bool(true))) {
            info.append("hexEncoded", &encoded_as_hex);
        }
        info.append("collation", &listed);
    }
    let message = format!(
        "E11000 duplicate key error collection: {} index: {}{under} dup key: {}",
        collection.ns,
        index.spec.name,
        key_value.as_raw()
    );
    Error::new(Code::DuplicateKey, message).with_info(info)
}
