//! The update operators, one file each. The driver (`walk`) finds the place a path leads to and lends it as a
//! [`Slot`]; an operator only says what becomes of the value there. Conflicts, positional parts, array filters and the
//! creation of paths live in the driver.

use espalier_value::{ArrayBuf, Error, RawArray, RawDoc, Result, Value, ValueRef};

use super::trail::Trail;
use crate::context::Context;
use crate::expression::Scope;
use crate::registry::{Entry, State};

mod add_to_set;
mod bit;
mod current_date;
mod inc;
mod max;
mod min;
mod mul;
mod pop;
mod pull;
mod pull_all;
mod push;
pub(super) mod rename;
mod set;
mod set_on_insert;
mod unset;

/// One update operator: its name, one sentence, and how its argument for one path is read.
pub(super) struct Definition {
    pub name: &'static str,
    pub doc: &'static str,
    pub parse: fn(&Argument<'_>) -> Result<Box<dyn Operator>>,
}

/// Sorted by name.
pub(super) static ALL: &[&Definition] = &[
    &add_to_set::ADD_TO_SET,
    &bit::BIT,
    &current_date::CURRENT_DATE,
    &inc::INC,
    &max::MAX,
    &min::MIN,
    &mul::MUL,
    &pop::POP,
    &pull::PULL,
    &pull_all::PULL_ALL,
    &push::PUSH,
    &rename::RENAME,
    &set::SET,
    &set_on_insert::SET_ON_INSERT,
    &unset::UNSET,
];

pub(super) fn find(name: &str) -> Option<&'static Definition> {
    ALL.iter().find(|d| d.name == name).copied()
}

pub(super) fn entries() -> impl Iterator<Item = Entry> {
    ALL.iter().map(|d| Entry { name: d.name, state: State::Supported, doc: d.doc })
}

/// `path: value` inside an operator's document.
pub(super) struct Argument<'a> {
    pub path: &'a str,
    pub value: ValueRef<'a>,
    /// For conditions inside the argument.
    pub scope: &'a Scope,
}

impl Argument<'_> {
    /// `path: value` as error messages show it.
    pub fn show(&self) -> String {
        format!("{}: {}", self.path, self.value)
    }
}

/// The place an operator is applied to.
pub(super) struct Slot<'s, 'a> {
    /// `None` if the path leads to nothing.
    pub value: Option<ValueRef<'a>>,
    /// The document before the update.
    pub root: RawDoc<'a>,
    pub context: &'a Context,
    pub inserting: bool,
    pub trail: &'s Trail<'s>,
    /// Where a blocked path ends, if it is one.
    pub at: Option<&'s Trail<'s>>,
}

impl<'a> Slot<'_, 'a> {
    /// `_id: 1` of the document, for error messages.
    pub fn show_id(&self) -> String {
        match self.root.get("_id") {
            Some(id) => format!("_id: {id}"),
            None => "no id".to_string(),
        }
    }
}

/// What becomes of a slot.
pub(super) enum Outcome<'a> {
    /// Stays as it is: not a modification.
    Keep,
    /// Takes this value; not a modification if it has the very same bytes already.
    Set(Value<'a>),
    /// Takes this value and counts as a modification whatever was there.
    Replace(Value<'a>),
    /// Goes away; inside an array it becomes null.
    Remove,
}

impl<'a> Outcome<'a> {
    pub fn set(value: ValueRef<'a>) -> Outcome<'a> {
        Outcome::Set(Value::Ref(value))
    }
}

/// What an operator does where its path cannot exist (`a.b` in `{a: 1}`).
pub(super) enum Blocked {
    Ignore,
    /// It would have to create the path: an error.
    CannotCreate,
    /// It has nothing to do there, yet the path makes no sense: an error too.
    CannotTraverse,
}

/// A parsed operator with its argument.
pub(super) trait Operator: std::fmt::Debug + Send + Sync {
    /// What becomes of the value; called for missing ones only if `creates`.
    fn apply<'a>(&'a self, slot: &Slot<'_, 'a>) -> Result<Outcome<'a>>;

    /// Whether a missing path is created.
    fn creates(&self) -> bool {
        true
    }

    /// `slot` is the deepest place that exists.
    fn blocked(&self, _slot: &Slot<'_, '_>) -> Result<Blocked> {
        Ok(if self.creates() { Blocked::CannotCreate } else { Blocked::CannotTraverse })
    }

    /// Whether all it does is to append to the array, whatever that holds.
    fn appends(&self) -> bool {
        false
    }

    /// If the operator only adds elements behind those of this array: how many there were. Change streams then tell of
    /// the new ones alone.
    fn appends_to(&self, _old: ValueRef<'_>) -> Option<usize> {
        None
    }

    /// Levels of nesting the operator puts below its path.
    fn depth(&self) -> usize {
        0
    }
}

/// The array with more elements at its end; the old ones are copied in one piece.
fn appended<'v>(old: RawArray<'_>, new: impl Iterator<Item = ValueRef<'v>>) -> ArrayBuf {
    let mut array = ArrayBuf::from_raw(old);
    new.for_each(|value| {
        array.push(value);
    });
    array
}

/// What `$pull` and `$pullAll` share: the array with the elements that `keep` keeps.
fn retain<'a>(slot: &Slot<'_, 'a>, keep: impl Fn(ValueRef<'a>) -> Result<bool>) -> Result<Outcome<'a>> {
    let array = match slot.value {
        Some(ValueRef::Array(array)) => array,
        Some(_) => return Err(Error::bad_value("Cannot apply $pull to a non-array value")),
        None => return Ok(Outcome::Keep),
    };
    let mut kept = ArrayBuf::new();
    let mut removed = false;
    for element in array.iter() {
        if keep(element)? {
            kept.push(element);
        } else {
            removed = true;
        }
    }
    Ok(if removed { Outcome::Replace(Value::array(kept)) } else { Outcome::Keep })
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn the_list_is_sorted_and_names_are_operators() {
        assert!(ALL.windows(2).all(|w| w[0].name < w[1].name));
        assert!(ALL.iter().all(|d| d.name.starts_with('$') && d.doc.ends_with('.')));
    }
}
