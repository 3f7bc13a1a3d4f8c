//! `$rename` moves a field to another path, over whatever is there. Nothing happens if the source is missing; neither
//! path may lead through an array. The operator sits at the target and reads the source from the document as it was;
//! [`Source`] sits at the source and removes it.

use espalier_value::{Code, Error, Path, RawDoc, Result, ValueRef};

use super::{Argument, Blocked, Definition, Operator, Outcome, Slot};
use crate::update::names::array_index;
use crate::update::{immutable_id, nesting, path};

pub(super) static RENAME: Definition =
    Definition { name: "$rename", doc: "Moves a field to another name or path.", parse };

#[derive(Debug)]
struct Rename {
    from: Path,
    to: Box<str>,
}

/// The path a field is moved away from.
#[derive(Debug)]
pub(crate) struct Source;

fn parse(argument: &Argument<'_>) -> Result<Box<dyn Operator>> {
    let ValueRef::String(to) = argument.value else {
        let message = format!("The 'to' field for $rename must be a string: {}", argument.show());
        return Err(Error::bad_value(message));
    };
    if to.contains('\0') {
        return Err(Error::bad_value("The 'to' field for $rename cannot contain an embedded null byte"));
    }
    let (from, to_path) = (Path::parse_strict(argument.path)?, Path::parse_strict(to)?);
    if from == to_path {
        let message = format!("The source and target field for $rename must differ: {}", argument.show());
        return Err(Error::bad_value(message));
    }
    if from.is_prefix_of(&to_path) || to_path.is_prefix_of(&from) {
        let message =
            format!("The source and target field for $rename must not be on the same path: {}", argument.show());
        return Err(Error::bad_value(message));
    }
    if path::is_dynamic(argument.path) {
        let message = format!("The source field for $rename may not be dynamic: {from}");
        return Err(Error::bad_value(message));
    }
    if path::is_dynamic(to) {
        let message = format!("The destination field for $rename may not be dynamic: {to}");
        return Err(Error::bad_value(message));
    }
    Ok(Box::new(Rename { from, to: to.into() }))
}

impl Rename {
    /// The value to move, if there is one and it may be moved.
    fn source<'a>(&self, root: RawDoc<'a>, id: impl Fn() -> String) -> Result<Option<ValueRef<'a>>> {
        let mut value = ValueRef::Document(root);
        // The innermost array on the way: MongoDB names it when it refuses.
        let mut array = None;
        let mut above = "";
        for part in self.from.parts() {
            let next = match value {
                ValueRef::Document(doc) => doc.get(part.name()),
                ValueRef::Array(items) => {
                    array = Some(above);
                    let Some(index) = array_index(part.name()) else {
                        return Err(self.cannot_traverse(above, value));
                    };
                    items.get(index)
                }
                _ => return Err(self.cannot_traverse(above, value)),
            };
            let Some(next) = next else { return Ok(None) };
            value = next;
            above = part.name();
        }
        match array {
            None => Ok(Some(value)),
            Some(array) => Err(self.through_array("source", self.from.as_str(), &id(), array)),
        }
    }

    fn cannot_traverse(&self, above: &str, value: ValueRef<'_>) -> Error {
        let message =
            format!("cannot use the part ({above} of {}) to traverse the element ({{{above}: {value}}})", self.from);
        Error::new(Code::PathNotViable, message)
    }

    fn through_array(&self, which: &str, path: &str, id: &str, array: &str) -> Error {
        Error::bad_value(format!(
            "The {which} field cannot be an array element, '{path}' in doc with {id} has an array field called '{array}'"
        ))
    }
}

impl Operator for Rename {
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        let Some(value) = self.source(slot.root, || slot.show_id())? else { return Ok(Outcome::Keep) };
        if let Some(array) = slot.trail.array_above() {
            return Err(self.through_array("destination", &self.to, &slot.show_id(), &array));
        }
        if slot.value.is_some() && &*self.to == "_id" {
            return Err(immutable_id("_id"));
        }
        nesting::check(slot.trail.depth() + nesting::depth(value))?;
        Ok(Outcome::set(value))
    }

    fn blocked(&self, slot: &Slot<'_, '_>) -> Result<Blocked> {
        if self.source(slot.root, || slot.show_id())?.is_none() {
            return Ok(Blocked::Ignore);
        }
        match (slot.value, slot.trail.array_above()) {
            (_, Some(array)) => Err(self.through_array("destination", &self.to, &slot.show_id(), &array)),
            (Some(ValueRef::Array(_)), None) => {
                let array = slot.at.map_or_else(String::new, |at| at.name());
                Err(self.through_array("destination", &self.to, &slot.show_id(), &array))
            }
            _ => Ok(Blocked::CannotCreate),
        }
    }
}

impl Operator for Source {
    fn apply<'a>(&'a self, _slot: &Slot<'_, 'a>) -> Result<Outcome<'a>> {
        Ok(Outcome::Remove)
    }

    fn creates(&self) -> bool {
        false
    }

    /// The operator at the target says what is wrong with the path.
    fn blocked(&self, _slot: &Slot<'_, '_>) -> Result<Blocked> {
        Ok(Blocked::Ignore)
    }
}
