//! Fields that a derivation keeps in the documents of a collection: read by anyone, written by the pattern alone.

use espalier_query::update::{Apply, Kind, Update as UpdateSpec};
use espalier_store::Update;
use espalier_value::{Code, Error, Path, RawDoc, Result, compare};
use std::sync::Arc;

use crate::bson::value_at;
use crate::derive::{Derivation, Patch};
use crate::roles::Roles;

/// The update with what the pattern keeps; `None` if it is good as it is. Refuses one that would write an owned field.
pub(super) fn kept(roles: &Roles, update: &Update, before: RawDoc<'_>) -> Result<Option<Update>> {
    if roles.derived.is_empty() {
        return Ok(None);
    }
    match update.update.kind() {
        Kind::Operators => {
            let touched = update.update.touched_paths().unwrap_or_default();
            for (derivation, own) in owned(roles) {
                if touched.iter().any(|path| path.is_prefix_of(own) || own.is_prefix_of(path)) {
                    return Err(not_yours(derivation, own));
                }
            }
            Ok(None)
        }
        Kind::Replacement => {
            let Some(mut after) = update.update.apply(before, &Apply::new(&update.context))? else { return Ok(None) };
            for (derivation, own) in owned(roles) {
                match (value_at(before, own.parts()), value_at(after.as_raw(), own.parts())) {
                    (Some(was), None) => {
                        let mut patch = Patch::default();
                        patch.set(own.clone(), was);
                        after = patch.applied(after.as_raw())?;
                    }
                    (Some(was), Some(is)) if compare(was, is).is_eq() => {}
                    (None, None) => {}
                    _ => return Err(not_yours(derivation, own)),
                }
            }
            Ok(Some(Update { update: Arc::new(UpdateSpec::stored(after)), ..update.clone() }))
        }
        // What it does is seen when it is done.
        Kind::Pipeline => Ok(None),
    }
}

/// Refuses an update that has changed an owned field.
pub(super) fn check_same(roles: &Roles, before: RawDoc<'_>, after: RawDoc<'_>) -> Result<()> {
    for (derivation, own) in owned(roles) {
        let same = match (value_at(before, own.parts()), value_at(after, own.parts())) {
            (None, None) => true,
            (Some(was), Some(is)) => compare(was, is).is_eq(),
            _ => false,
        };
        if !same {
            return Err(not_yours(derivation, own));
        }
    }
    Ok(())
}

/// A new document may have an owned field only with the value that the pattern gives it.
pub(super) fn check_given(derivation: &dyn Derivation, patch: &Patch, doc: RawDoc<'_>) -> Result<()> {
    for own in derivation.owns() {
        let Some(given) = value_at(doc, own.parts()) else { continue };
        if !patch.get(own).is_some_and(|value| compare(value, given).is_eq()) {
            return Err(not_yours(derivation, own));
        }
    }
    Ok(())
}

fn owned(roles: &Roles) -> impl Iterator<Item = (&dyn Derivation, &Path)> {
    roles.derived.iter().flat_map(|derivation| derivation.owns().iter().map(|own| (&**derivation, own)))
}

fn not_yours(derivation: &dyn Derivation, path: &Path) -> Error {
    Error::new(
        Code::ImmutableField,
        format!(
            "the field '{path}' belongs to the pattern '{}', which keeps it from '{}'; leave it out",
            derivation.kind(),
            derivation.source()
        ),
    )
}

/// Something about the one document, and not about the moment or the server.
pub(super) fn is_of_document(error: &Error) -> bool {
    matches!(error.code(), Code::ImmutableField | Code::PathNotViable | Code::BadValue | Code::TypeMismatch)
}
