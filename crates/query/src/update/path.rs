//! Update paths: their parts (`a.$[x].b.0`) and the rules they must keep.

use espalier_value::{Code, Error, Path, Result};

use super::tree::Part;

/// No document is nested that deep. (MongoDB loses count at 256.)
const PARTS_MAX: usize = 255;

/// Splits a path; `filter_of` gives the number of the array filter for an identifier.
pub(super) fn parse(text: &str, mut filter_of: impl FnMut(&str) -> Option<usize>) -> Result<Vec<Part>> {
    if text.split('.').nth(PARTS_MAX).is_some() {
        return Err(Error::new(Code::Overflow, format!("An update path may have at most {PARTS_MAX} parts")));
    }
    Path::check_strict(text)?;
    let mut parts = Vec::new();
    let mut positional = 0;
    for (i, name) in text.split('.').enumerate() {
        let part = match identifier(name) {
            _ if name == "$" => {
                positional += 1;
                Part::Positional
            }
            Some(id) => {
                if i == 0 {
                    return Err(first_position(text, "array filter identifier (i.e. '$[<id>]')"));
                }
                let filter = if id.is_empty() { None } else { Some(filter_of(id).ok_or_else(|| unknown(id, text))?) };
                Part::Elements { identifier: id.into(), filter }
            }
            None => Part::Name(name.into()),
        };
        parts.push(part);
    }
    if positional > 1 {
        let message = format!("Too many positional (i.e. '$') elements found in path '{text}'");
        return Err(Error::bad_value(message));
    }
    if parts.first() == Some(&Part::Positional) {
        return Err(first_position(text, "positional (i.e. '$')"));
    }
    Ok(parts)
}

/// The `id` of `$[id]`.
fn identifier(name: &str) -> Option<&str> {
    name.strip_prefix("$[")?.strip_suffix(']')
}

/// Whether a path can only be resolved with a document at hand: it has `$` or `$[…]`.
pub(super) fn is_dynamic(text: &str) -> bool {
    text.split('.').any(|name| name == "$" || identifier(name).is_some())
}

fn first_position(text: &str, what: &str) -> Error {
    Error::bad_value(format!("Cannot have {what} element in the first position in path '{text}'"))
}

fn unknown(id: &str, text: &str) -> Error {
    Error::bad_value(format!("No array filter found for identifier '{id}' in path '{text}'"))
}

/// A top-level name that starts with `$` cannot be made by an update, so that it is not taken for an operator.
pub(super) fn dollar_prefixed(name: &str) -> Error {
    let message = format!(
        "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an update's replacement \
         document. Consider using an aggregation pipeline with $replaceWith."
    );
    Error::new(Code::DollarPrefixedFieldName, message)
}
