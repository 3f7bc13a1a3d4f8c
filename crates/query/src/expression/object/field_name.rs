//! The `field` of `$getField`, `$setField` and `$unsetField`: a constant string, taken literally.

use super::super::prelude::*;

/// The codes for a reference, a computed name and a name that is no string.
pub(super) struct Codes {
    pub reference: i32,
    pub computed: i32,
    pub not_string: i32,
}

pub(super) fn parse(operator: &str, value: ValueRef<'_>, codes: &Codes) -> Result<Box<str>> {
    let constant = match value {
        ValueRef::String(text) if text.starts_with('$') => {
            let message = format!(
                "'{text}' is a field path reference which is not allowed in this context. \
                 Did you mean {{$literal: '{text}'}}?"
            );
            return refuse(codes.reference, message);
        }
        ValueRef::Document(doc) => match doc.first().filter(|_| doc.count() == 1) {
            Some(elem) if matches!(elem.name(), "$literal" | "$const") => elem.value(),
            _ => {
                let message =
                    format!("{operator} requires 'field' to evaluate to a constant, but got a non-constant argument");
                return refuse(codes.computed, message);
            }
        },
        other => other,
    };
    match constant {
        ValueRef::String(name) => Ok(name.into()),
        other => refuse(
            codes.not_string,
            format!("{operator} requires 'field' to evaluate to type String, but got {}", other.ty().name()),
        ),
    }
}
