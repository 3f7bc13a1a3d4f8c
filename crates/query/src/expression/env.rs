//! What an evaluation can see: the document, the command's context, and the variables of enclosing `$let`, `$map`, ….

use espalier_value::{DocBuf, Path, RawDoc, Value, ValueRef};
use smallvec::SmallVec;

use super::field_path;
use crate::context::Context;
use crate::stage::replace;
use crate::stream::Replaced;

/// Cheap to make for each document: it holds no variables until an operator binds some.
pub struct Env<'a> {
    root: RawDoc<'a>,
    /// Read instead of what the document has there.
    replaced: Option<Replaced<'a>>,
    pub context: &'a Context,
    /// Values of the variables that enclosing operators bind, outermost first; `None` is missing.
    slots: SmallVec<[Option<ValueRef<'a>>; 4]>,
}

impl<'a> Env<'a> {
    #[inline]
    pub fn new(root: RawDoc<'a>, context: &'a Context) -> Env<'a> {
        Env { root, replaced: None, context, slots: SmallVec::new() }
    }

    /// The same document with another value at a path, if there is one.
    #[inline]
    pub(crate) fn with(self, replaced: Option<Replaced<'a>>) -> Env<'a> {
        Env { replaced, ..self }
    }

    /// The value at a path of the document.
    #[inline]
    pub(super) fn field(&self, path: &Path) -> Value<'a> {
        match &self.replaced {
            None => field_path::walk(self.root, path),
            Some(replaced) if replaced.path.is_prefix_of(path) => {
                field_path::walk_below(replaced.value, &path.parts()[replaced.path.parts().len()..])
            }
            Some(_) => field_path::walk(self.root, path),
        }
    }

    /// The document, as it was given. Only what says that it reads the whole document may ask.
    #[inline]
    pub fn root(&self) -> RawDoc<'a> {
        self.root
    }

    /// The document with the replaced value in its place; `out` is where it is written if it has to be.
    pub(super) fn whole<'o>(&'o self, out: &'o mut DocBuf) -> RawDoc<'o> {
        match &self.replaced {
            None => self.root,
            Some(replaced) => {
                replace(self.root, replaced.path.parts(), Some(replaced.value), out);
                out.as_raw()
            }
        }
    }

    /// The same with room for more variables, whose values may live shorter than the document.
    pub(super) fn nested<'b>(&self) -> Env<'b>
    where
        'a: 'b,
    {
        Env {
            root: self.root,
            replaced: self.replaced,
            context: self.context,
            slots: self.slots.iter().copied().collect(),
        }
    }

    /// Binds the next variable.
    pub(crate) fn push(&mut self, value: Option<ValueRef<'a>>) {
        self.slots.push(value);
    }

    /// Binds the variable in `slot` anew.
    pub(super) fn set(&mut self, slot: usize, value: Option<ValueRef<'a>>) {
        if let Some(old) = self.slots.get_mut(slot) {
            *old = value;
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slot(&self, slot: usize) -> Option<ValueRef<'a>> {
        self.slots.get(slot).copied().flatten()
    }
}
