//! What each document gives to a group: the value of the key and one for each accumulator.
//!
//! Most are plain top-level fields (`"$price"`), often the same one several times. Their names are gathered once, and
//! one pass over a document's fields finds them all; only what is left is evaluated as an expression.

use espalier_value::{Path, RawDoc, ValueRef};
use smallvec::SmallVec;

use crate::expression::Expression;

#[derive(Debug)]
pub(super) struct Inputs {
    /// Top-level fields that are read.
    names: Names,
    /// Fields that are read of each value of an array that is lent apart from its document.
    pub inner: Names,
    /// Where each value comes from: the key's first, then those of the accumulators.
    pub from: Vec<From>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A field, by its place among the names.
    Field(usize),
    Constant,
    Computed,
    /// A value of an array that is lent apart.
    Element,
    /// A field of it, by its place among the inner names.
    Inner(usize),
}

/// The fields of one document, in the order of the names.
pub(super) type Fields<'a> = SmallVec<[Option<ValueRef<'a>>; 8]>;

/// Names of fields, each once.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Box<str>>);

impl Inputs {
    /// `apart` is the path of an array that is lent apart from its document.
    pub fn new<'e>(expressions: impl Iterator<Item = &'e Expression>, apart: Option<&Path>) -> Inputs {
        let (mut names, mut inner) = (Names::default(), Names::default());
        let from = expressions
            .map(|expression| match (expression.as_field_path(), apart) {
                (Some(path), Some(apart)) if apart.is_prefix_of(path) => match &path.parts()[apart.parts().len()..] {
                    [] => From::Element,
                    [part] => From::Inner(inner.place(part.name())),
                    _ => From::Computed,
                },
                (Some(path), _) if path.is_single() => From::Field(names.place(path.as_str())),
                _ if expression.is_constant() => From::Constant,
                _ => From::Computed,
            })
            .collect();
        Inputs { names, inner, from }
    }

    /// Finds the fields of a document.
    #[inline]
    pub fn read<'a>(&self, doc: RawDoc<'a>, fields: &mut Fields<'a>) {
        self.names.read(doc, fields);
    }
}

impl Names {
    fn place(&mut self, name: &str) -> usize {
        let known = self.0.iter().position(|known| **known == *name);
        known.unwrap_or_else(|| {
            self.0.push(name.into());
            self.0.len() - 1
        })
    }

    /// Finds the fields; of two with one name the first.
    #[inline]
    pub fn read<'a>(&self, doc: RawDoc<'a>, fields: &mut Fields<'a>) {
        fields.clear();
        fields.resize(self.0.len(), None);
        let mut left = self.0.len();
        if left == 0 {
            return;
        }
        for elem in doc {
            let found = self.0.iter().position(|name| name.as_bytes() == elem.name_bytes());
            if let Some(at) = found
                && fields[at].is_none()
            {
                fields[at] = Some(elem.value());
                left -= 1;
                if left == 0 {
                    return;
                }
            }
        }
    }
}
