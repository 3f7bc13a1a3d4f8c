//! What the commands whose privileges depend on the request look at. A request is not parsed yet when it is asked: what is
//! malformed here is refused by the command itself.

use espalier_value::ValueRef;
use espalier_value::number::Number;

use crate::auth::{Action, Rights};
use crate::request::Request;

/// Whether a field is there and not false.
pub(super) fn asks_for(request: &Request<'_>, field: &str) -> bool {
    request.body.get(field).is_some_and(is_truthy)
}

/// What a command could take for "yes": to be on the safe side everything but false, zero and null.
pub(super) fn is_truthy(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Bool(given) => given,
        value if value.is_nullish() => false,
        value => Number::of(value).is_none_or(|number| !number.is_zero()),
    }
}

/// Whether actions are allowed on the collection that the argument names.
pub(super) fn may_on_collection(request: &Request<'_>, rights: &Rights, actions: &[Action]) -> bool {
    actions.iter().all(|action| match request.argument {
        ValueRef::String(name) | ValueRef::Symbol(name) => rights.on_namespace(request.db, name, *action),
        _ => rights.on_database(request.db, *action),
    })
}
