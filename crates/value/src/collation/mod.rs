//! Collations: how strings compare in a language. A [`Collation`] is what a client asked for, checked and completed as
//! MongoDB does; a [`Collator`] is the order of values under one, or BSON's own order without.
//!
//! Two strings are equal under a collation exactly if their keys are, so that an index, a sort and a comparison of
//! two values never disagree.

mod icu;
mod locale;
mod options;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::sync::Arc;

use crate::compare;
use crate::doc::{ArrayBuf, DocBuf};
use crate::error::Result;
use crate::key;
use crate::raw::{RawDoc, ValueRef};
use crate::value::Value;
use options::Options;

/// The version of the rules that MongoDB 6.0 names, which clients see.
const VERSION: &str = "57.1";

/// Raised whenever the same string may get another key, so that an index written under the old rules is noticed.
pub const RULES: i32 = 1;

/// A language's rules for comparing strings, ready for use.
pub struct Collation {
    options: Options,
    icu: icu::Icu,
}

impl Collation {
    /// Reads a collation document; `parent` is the command whose field it is, for errors. `None` is the simple
    /// collation: strings compare as bytes.
    pub fn parse(doc: RawDoc<'_>, parent: &str) -> Result<Option<Arc<Collation>>> {
        let Some((options, tag)) = Options::parse(doc, parent)? else { return Ok(None) };
        let icu = icu::Icu::new(&tag, &options)?;
        Ok(Some(Arc::new(Collation { options, icu })))
    }

    /// The document as MongoDB lists it, with everything that was left out.
    pub fn listed(&self) -> DocBuf {
        let mut out = self.options.listed();
        out.append("version", VERSION);
        out
    }

    #[inline]
    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        self.icu.compare(a, b)
    }

    /// A text whose bytes compare as the strings do: each byte of the sort key as the character of that number. It
    /// takes the string's place in index keys and in bounds, which then need to know nothing of collations.
    pub fn key(&self, text: &str) -> String {
        let mut bytes = Vec::with_capacity(2 * text.len() + 8);
        self.icu.write_key(text, &mut bytes);
        bytes.into_iter().map(char::from).collect()
    }
}

impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        self.options == other.options
    }
}

impl Eq for Collation {}

impl std::fmt::Debug for Collation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.options.fmt(f)
    }
}

/// The order of values, in which strings compare under a collation if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collator<'c>(Option<&'c Collation>);

impl<'c> Collator<'c> {
    /// BSON's own order: strings compare as bytes.
    pub const SIMPLE: Collator<'static> = Collator(None);

    pub fn new(collation: Option<&'c Collation>) -> Collator<'c> {
        Collator(collation)
    }

    #[inline]
    pub fn of(collation: &'c Option<Arc<Collation>>) -> Collator<'c> {
        Collator(collation.as_deref())
    }

    pub fn is_simple(self) -> bool {
        self.0.is_none()
    }

    pub fn collation(self) -> Option<&'c Collation> {
        self.0
    }

    #[inline]
    pub fn compare(self, a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
        compare::collated(a, b, self.0)
    }

    #[inline]
    pub fn equal(self, a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
        self.compare(a, b).is_eq()
    }

    /// Appends the order-preserving key of a value; see [`key`].
    #[inline]
    pub fn encode(self, out: &mut Vec<u8>, value: ValueRef<'_>) {
        key::collated(out, value, self.0);
    }

    /// As [`Collator::encode`], inverted if `descending`.
    #[inline]
    pub fn encode_directed(self, out: &mut Vec<u8>, value: ValueRef<'_>, descending: bool) {
        let start = out.len();
        self.encode(out, value);
        if descending {
            key::invert(&mut out[start..]);
        }
    }

    /// The value as an index holds it: every string replaced by its [`Collation::key`].
    pub fn translate<'v>(self, value: ValueRef<'v>) -> Value<'v> {
        match self.0 {
            Some(collation) if is_collated(value) => translated(value, collation),
            _ => Value::Ref(value),
        }
    }

    /// The key of one value on its own.
    pub fn key(self, value: ValueRef<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        self.encode(&mut out, value);
        out
    }
}

fn translated(value: ValueRef<'_>, collation: &Collation) -> Value<'static> {
    match value {
        ValueRef::String(text) | ValueRef::Symbol(text) => Value::string(collation.key(text)),
        ValueRef::Document(doc) => Value::document(translated_doc(doc, collation)),
        ValueRef::Array(array) => {
            let mut out = ArrayBuf::new();
            for value in array.iter() {
                out.push_value(&translated(value, collation));
            }
            Value::array(out)
        }
        ValueRef::JavaScriptWithScope(code, scope) => {
            let scope = translated_doc(scope, collation);
            Value::own(ValueRef::JavaScriptWithScope(code, scope.as_raw()))
        }
        value => Value::own(value),
    }
}

fn translated_doc(doc: RawDoc<'_>, collation: &Collation) -> DocBuf {
    let mut out = DocBuf::new();
    for elem in doc {
        out.append_value(elem.name(), &translated(elem.value(), collation));
    }
    out
}

/// A [`Collation::key`] for people.
pub fn hex(key: &str) -> String {
    key.chars().map(|byte| format!("{:02x}", u32::from(byte))).collect()
}

/// Whether a value is or holds a string, whose place in an order depends on the collation.
pub fn is_collated(value: ValueRef<'_>) -> bool {
    use ValueRef as V;
    matches!(value, V::String(_) | V::Symbol(_) | V::Document(_) | V::Array(_) | V::JavaScriptWithScope(..))
}
