//! What a document must be to be stored: valid in its collection, and within the limits of size and nesting.

use espalier_query::Context;
use espalier_store::{ValidationAction, ValidationLevel};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

use crate::catalog::Collection;
use crate::core::EngineOptions;

/// Refuses a document that breaks the collection's validator. `before` is the document an update replaces.
pub fn check_valid(
    collection: &Collection,
    doc: RawDoc<'_>,
    before: Option<RawDoc<'_>>,
    context: &Context,
) -> Result<()> {
    let Some(validator) = &collection.validator else { return Ok(()) };
    let options = &collection.options;
    if options.validation_level == ValidationLevel::Off || options.validation_action == ValidationAction::Warn {
        return Ok(());
    }
    if validator.matches(doc, context)? {
        return Ok(());
    }
    if options.validation_level == ValidationLevel::Moderate
        && let Some(before) = before
        && !validator.matches(before, context)?
    {
        return Ok(());
    }
    let mut info = DocBuf::new();
    info.append("errInfo", &validator.explain_failure(doc, context));
    Err(Error::new(Code::DocumentValidationFailure, "Document failed validation").with_info(info))
}

/// Refuses a document past the limits of size and nesting. `code` is the one for its size.
pub fn check_size(doc: RawDoc<'_>, options: &EngineOptions, code: Code) -> Result<()> {
    let (bytes, bytes_max) = (doc.as_bytes().len(), options.document_bytes_max);
    if bytes <= bytes_max {
        return check_depth(doc, options.document_depth_max, code);
    }
    let what = match code {
        Code::BSONObjectTooLarge => {
            format!("object to insert too large. size in bytes: {bytes}, max size: {bytes_max}")
        }
        Code(17420) => format!("Document to upsert is larger than {bytes_max}"),
        _ => format!("Resulting document after update is larger than {bytes_max}"),
    };
    Err(Error::new(code, what))
}

fn check_depth(doc: RawDoc<'_>, max: usize, code: Code) -> Result<()> {
    if !doc.is_deeper_than(max) {
        return Ok(());
    }
    let what = match code {
        Code::BSONObjectTooLarge => format!("cannot insert document because it exceeds {max} levels of nesting"),
        _ => format!("Document exceeds maximum nesting depth of {max}"),
    };
    Err(Error::new(Code::Overflow, what))
}
