//! Walking a path as expressions do: through a document by name, through an array into every document in it, never by
//! index. Nothing is allocated unless an array is met before the last name.

use espalier_value::path::Part;
use espalier_value::{ArrayBuf, Code, Error, Path, RawArray, RawDoc, Result, Value, ValueRef};

/// The value at the path, lent from the document.
#[inline]
pub fn walk<'a>(doc: RawDoc<'a>, path: &Path) -> Value<'a> {
    walk_parts(doc, path.parts())
}

/// The value at a path below any value.
pub fn walk_value<'a>(value: ValueRef<'a>, path: &Path) -> Value<'a> {
    walk_below(value, path.parts())
}

/// As [`walk_value`], for the rest of a path; of no rest, the value itself.
#[inline]
pub(super) fn walk_below<'a>(value: ValueRef<'a>, parts: &[Part]) -> Value<'a> {
    match value {
        value if parts.is_empty() => Value::Ref(value),
        ValueRef::Document(doc) => walk_parts(doc, parts),
        ValueRef::Array(array) => Value::array(through_array(array, parts)),
        _ => Value::Missing,
    }
}

fn walk_parts<'a>(mut doc: RawDoc<'a>, parts: &[Part]) -> Value<'a> {
    for (at, part) in parts.iter().enumerate() {
        let rest = &parts[at + 1..];
        match doc.get(part.name()) {
            None => return Value::Missing,
            Some(value) if rest.is_empty() => return Value::Ref(value),
            Some(ValueRef::Document(inner)) => doc = inner,
            Some(ValueRef::Array(array)) => return Value::array(through_array(array, rest)),
            Some(_) => return Value::Missing,
        }
    }
    Value::Ref(ValueRef::Document(doc))
}

/// What the documents of an array hold at the path; those that hold nothing, and other elements, are left out.
fn through_array(array: RawArray<'_>, parts: &[Part]) -> ArrayBuf {
    let mut out = ArrayBuf::new();
    for value in array.iter() {
        if let ValueRef::Document(doc) = value
            && let Some(found) = walk_parts(doc, parts).as_ref()
        {
            out.push(found);
        }
    }
    out
}

/// Parses the part of a field path behind `$`, with MongoDB's rules for its names.
pub fn parse(text: &str) -> Result<Path> {
    if text.is_empty() {
        return Err(Error::new(Code(40352), "FieldPath cannot be constructed with empty string"));
    }
    if text.ends_with('.') {
        return Err(Error::new(Code(40353), "FieldPath must not end with a '.'."));
    }
    text.split('.').try_for_each(validate_name)?;
    let path = Path::new(text);
    if path.parts().len() > espalier_value::DEPTH_MAX {
        return Err(Error::new(Code::Overflow, "FieldPath is too long"));
    }
    Ok(path)
}

/// Checks one name of a path, or of an object expression.
pub fn validate_name(name: &str) -> Result<()> {
    let refuse = |code, message: &str| Err(Error::new(Code(code), message));
    if name.is_empty() {
        return refuse(15998, "FieldPath field names may not be empty strings.");
    }
    // The names of a DBRef's fields are the exception.
    if name.starts_with('$') && !matches!(name, "$id" | "$ref" | "$db") {
        return refuse(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    }
    if name.contains('\0') {
        return refuse(16411, "FieldPath field names may not contain '\\0'.");
    }
    if name.contains('.') {
        return refuse(16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.");
    }
    Ok(())
}
