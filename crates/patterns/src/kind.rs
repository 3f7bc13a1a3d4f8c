//! The kinds of patterns there are: one line each.

use std::sync::Arc;

use espalier_query::registry::{Entry, State};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef};

use crate::approximate;
use crate::archive;
use crate::bucket;
use crate::computed;
use crate::derive::Derivation;
use crate::fields::Fields;
use crate::layout::Layout;
use crate::outlier;
use crate::reference;
use crate::shared;
use crate::subset;

/// One kind of pattern: its name in a declaration, one sentence, and how a declaration is read.
pub struct Kind {
    pub name: &'static str,
    pub doc: &'static str,
    /// Reads a declaration on the collection of that name.
    pub parse: fn(&Fields<'_>, collection: &str) -> Result<Parsed>,
}

/// A declaration, read.
pub struct Parsed {
    pub role: Role,
    /// All options with their defaults filled in.
    pub options: DocBuf,
    /// Fields of the collection's documents that only the pattern writes.
    pub owned: Vec<Box<str>>,
}

/// What a pattern does.
pub enum Role {
    Layout(Arc<dyn Layout>),
    Derivation(Arc<dyn Derivation>),
}

impl Parsed {
    pub fn layout(layout: Arc<dyn Layout>, options: DocBuf, owned: Vec<Box<str>>) -> Parsed {
        Parsed { role: Role::Layout(layout), options, owned }
    }

    pub fn derivation(derivation: Arc<dyn Derivation>, options: DocBuf, owned: Vec<Box<str>>) -> Parsed {
        Parsed { role: Role::Derivation(derivation), options, owned }
    }
}

/// Sorted by name.
pub static ALL: &[&Kind] = &[
    &approximate::APPROXIMATE,
    &archive::ARCHIVE,
    &bucket::BUCKET,
    &computed::COMPUTED,
    &outlier::OUTLIER,
    &reference::REFERENCE,
    &shared::SHARED,
    &subset::SUBSET,
];

/// Kinds that have a meaning and are not carried out yet.
static KNOWN: &[&str] = &["blob", "bound", "events", "expire", "materialized", "mirror", "tree", "types", "versions"];

pub fn registry() -> impl Iterator<Item = Entry> {
    let known = KNOWN.iter().map(|name| Entry { name, state: State::KnownUnsupported, doc: "" });
    ALL.iter().map(|kind| Entry { name: kind.name, state: State::Supported, doc: kind.doc }).chain(known)
}

/// Reads one entry of `patterns`.
pub fn parse(position: usize, declaration: ValueRef<'_>, collection: &str) -> Result<(&'static Kind, Parsed)> {
    let at = format!("patterns.{position}");
    let wrong = |what: String| Error::new(Code::InvalidOptions, format!("{at}: {what}"));
    let Some(doc) = declaration.as_doc() else {
        return Err(wrong(format!("must be an object with the pattern's name, not {}", declaration.ty().name())));
    };
    let mut elems = doc.iter();
    let (Some(elem), None) = (elems.next(), elems.next()) else {
        return Err(wrong(format!("must have one field, the pattern's name; it has {}", doc.count())));
    };
    let name = elem.name();
    let Some(kind) = ALL.iter().find(|kind| kind.name == name) else {
        if KNOWN.contains(&name) {
            return Err(wrong(format!("the pattern '{name}' is not supported yet")));
        }
        let names: Vec<&str> = ALL.iter().map(|kind| kind.name).collect();
        return Err(wrong(format!("unknown pattern '{name}'; known are {}", names.join(", "))));
    };
    let options: RawDoc<'_> = match elem.value() {
        ValueRef::Document(options) => options,
        other => return Err(wrong(format!("{name} must be an object, not {}", other.ty().name()))),
    };
    let fields = Fields::new(format!("{at}.{name}"), options);
    let parsed = (kind.parse)(&fields, collection)?;
    fields.finish()?;
    Ok((kind, parsed))
}
