//! What each document gives to a group: the value of the key and one for each accumulator.
//!
//! Most are plain top-level fields (`"$price"`), often the same one several times. Their names are gathered once, and
//! one pass over a document's fields finds them all; only what is left is evaluated as an expression.

use espalier_value::{RawDoc, ValueRef};
use smallvec::SmallVec;

use crate::expression::Expression;
use crate::stream::Replaced;

#[derive(Debug)]
pub(super) struct Inputs {
    /// Top-level fields that are read.
    names: Vec<Box<str>>,
    /// Where each value comes from: the key's first, then those of the accumulators.
    pub from: Vec<From>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A field, by its place among the names.
    Field(usize),
    Constant,
    Computed,
}

/// The fields of one document, in the order of the names.
pub(super) type Fields<'a> = SmallVec<[Option<ValueRef<'a>>; 8]>;

impl Inputs {
    pub fn new<'e>(expressions: impl Iterator<Item = &'e Expression>) -> Inputs {
        let mut names: Vec<Box<str>> = Vec::new();
        let from = expressions
            .map(|expression| match expression.as_field_path() {
                Some(path) if path.is_single() => {
                    let known = names.iter().position(|name| **name == *path.as_str());
                    From::Field(known.unwrap_or_else(|| {
                        names.push(path.as_str().into());
                        names.len() - 1
                    }))
                }
                _ if expression.is_constant() => From::Constant,
                _ => From::Computed,
            })
            .collect();
        Inputs { names, from }
    }

    /// Finds the fields; of two with one name the first.
    #[inline]
    pub fn read<'a>(&self, doc: RawDoc<'a>, replaced: Option<Replaced<'a>>, fields: &mut Fields<'a>) {
        fields.clear();
        fields.resize(self.names.len(), None);
        let mut left = self.names.len();
        if let Some(replaced) = replaced
            && let Some(at) = self.names.iter().position(|name| **name == *replaced.path.as_str())
        {
            fields[at] = Some(replaced.value);
            left -= 1;
        }
        if left == 0 {
            return;
        }
        for elem in doc {
            let found = self.names.iter().position(|name| name.as_bytes() == elem.name_bytes());
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
