//! What an evaluation can see: the document, the command's context, and the variables of enclosing `$let`, `$map`, ….

use espalier_value::{RawDoc, ValueRef};
use smallvec::SmallVec;

use crate::context::Context;

/// Cheap to make for each document: it holds no variables until an operator binds some.
pub struct Env<'a> {
    pub root: RawDoc<'a>,
    pub context: &'a Context,
    /// Values of the variables that enclosing operators bind, outermost first; `None` is missing.
    slots: SmallVec<[Option<ValueRef<'a>>; 4]>,
}

impl<'a> Env<'a> {
    #[inline]
    pub fn new(root: RawDoc<'a>, context: &'a Context) -> Env<'a> {
        Env { root, context, slots: SmallVec::new() }
    }

    /// The same with room for more variables, whose values may live shorter than the document.
    pub(super) fn nested<'b>(&self) -> Env<'b>
    where
        'a: 'b,
    {
        Env { root: self.root, context: self.context, slots: self.slots.iter().copied().collect() }
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
