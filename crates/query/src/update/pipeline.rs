//! Updates by pipeline: the stages that make one document of one document, run on the document itself. `_id` is kept
//! whatever they do with it; another `_id` is refused.

use espalier_value::{Code, DocBuf, Error, RawArray, RawDoc, Result, ValueRef};

use super::{nesting, replacement};
use crate::context::Context;
use crate::expression::Scope;
use crate::stage::{self, Pipeline};

/// Sorted.
const ALLOWED: [&str; 6] = ["$addFields", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"];

#[derive(Debug)]
pub(super) struct Stages {
    pipeline: Pipeline,
}

impl Stages {
    pub fn parse(stages: RawArray<'_>, scope: &Scope) -> Result<Stages> {
        check_names(stages)?;
        // Only stages that read other documents look at the context while they are parsed.
        let pipeline = Pipeline::parse_deferring(stages, &scope.apart(), &Context::default())?;
        Ok(Stages { pipeline })
    }

    pub fn apply(&self, old: RawDoc<'_>, context: &Context) -> Result<Option<DocBuf>> {
        let mut new = DocBuf::with_capacity(old.as_bytes().len() + 64);
        self.pipeline.apply_one(old, context, &mut new)?;
        if new.as_bytes() == old.as_bytes() {
            return Ok(None);
        }
        nesting::check(nesting::depth(ValueRef::Document(new.as_raw())))?;
        replacement::with_id(old, new.as_raw()).map(Some)
    }
}

/// A stage that MongoDB does not have is an error before one that an update cannot have.
fn check_names(stages: RawArray<'_>) -> Result<()> {
    let mut refused = None;
    for value in stages.iter() {
        let ValueRef::Document(spec) = value else {
            return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
        };
        let mut elems = spec.iter();
        let (Some(elem), None) = (elems.next(), elems.next()) else {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(Error::new(Code(40323), message));
        };
        let name = elem.name();
        if ALLOWED.binary_search(&name).is_ok() {
            continue;
        }
        if stage::registry().all(|known| known.name != name) {
            return Err(Error::new(Code(40324), format!("Unrecognized pipeline stage name: '{name}'")));
        }
        refused = refused.or(Some(name));
    }
    match refused {
        None => Ok(()),
        Some(name) => {
            let message = format!("{name} is not allowed to be used within an update");
            Err(Error::new(Code::InvalidOptions, message))
        }
    }
}
