//! `$arrayToObject`: A document of the pairs [key, value] or {k, v} in an array; of two with one key the last counts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::super::prelude::*;

pub(super) static ARRAY_TO_OBJECT: Operator = Operator {
    name: "$arrayToObject",
    args: Args::Exactly(1),
    eval: Eval::Strict(array_to_object),
    doc: "A document of the pairs [key, value] or {k, v} in an array; of two with one key the last counts.",
};

fn array_to_object<'a>(args: &[Value<'a>]) -> Result<Value<'a>> {
    let array = match args[0].as_ref() {
        None | Some(ValueRef::Null | ValueRef::Undefined) => return Ok(Value::NULL),
        Some(ValueRef::Array(array)) => array,
        Some(other) => {
            let found = other.ty().name();
            return refuse(40386, format!("$arrayToObject requires an array input, found: {found}"));
        }
    };
    let mut fields: Vec<(&str, ValueRef<'_>)> = Vec::new();
    // Positions by key, so that many pairs do not cost the square of their number.
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut of_arrays = None;
    for item in array.iter() {
        let (key, value) = match (item, of_arrays) {
            (ValueRef::Array(pair), None | Some(true)) => {
                of_arrays = Some(true);
                from_array(pair)?
            }
            (ValueRef::Document(pair), None | Some(false)) => {
                of_arrays = Some(false);
                from_document(pair)?
            }
            (other, None) => {
                let found = other.ty().name();
                return refuse(40398, format!("Unrecognised input type format for $arrayToObject: {found}"));
            }
            (other, Some(of_arrays)) => {
                let message = format!(
                    "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. \
                     {} was detected, now found: {}",
                    if of_arrays { "Array" } else { "Object" },
                    other.ty().name()
                );
                return refuse(if of_arrays { 40396 } else { 40391 }, message);
            }
        };
        match places.entry(key) {
            Entry::Occupied(old) => fields[*old.get()].1 = value,
            Entry::Vacant(new) => {
                new.insert(fields.len());
                fields.push((key, value));
            }
        }
    }
    let mut doc = DocBuf::new();
    for (key, value) in fields {
        doc.append(key, value);
    }
    Ok(Value::document(doc))
}

fn from_array(pair: RawArray<'_>) -> Result<(&str, ValueRef<'_>)> {
    let mut items = pair.iter();
    let (Some(key), Some(value), None) = (items.next(), items.next(), items.next()) else {
        let message = format!("$arrayToObject requires an array of size 2 arrays, found array of size: {}", pair.len());
        return refuse(40397, message);
    };
    let ValueRef::String(key) = key else {
        let message = format!(
            "$arrayToObject requires an array of key-value pairs, where the key must be of type string. \
             Found key type: {}",
            key.ty().name()
        );
        return refuse(40395, message);
    };
    if key.contains('\0') {
        return refuse(4940400, "Key field cannot contain an embedded null byte");
    }
    Ok((key, value))
}

fn from_document(pair: RawDoc<'_>) -> Result<(&str, ValueRef<'_>)> {
    let count = pair.count();
    if count != 2 {
        let message =
            format!("$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{count}");
        return refuse(40392, message);
    }
    let (Some(key), Some(value)) = (pair.get("k"), pair.get("v")) else {
        let message = format!(
            "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: {pair:?}"
        );
        return refuse(40393, message);
    };
    let ValueRef::String(key) = key else {
        let message = format!(
            "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. \
             Found type: {}",
            key.ty().name()
        );
        return refuse(40394, message);
    };
    if key.contains('\0') {
        return refuse(4940401, "Key field cannot contain an embedded null byte");
    }
    Ok((key, value))
}
