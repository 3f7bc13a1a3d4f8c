//! Sort specifications: `{a: 1, "b.c": -1}`. A document's sort key is one memcomparable byte string.

use std::sync::Arc;

use espalier_value::number::Number;
use espalier_value::{Code, Collation, Collator, DocBuf, Error, Path, RawDoc, Result, ValueRef};

use crate::expression::{Scope, field_path};

mod key;
#[cfg(test)]
mod tests;

/// A parsed sort.
#[derive(Clone, Debug)]
pub struct Sort {
    fields: Vec<SortField>,
    source: DocBuf,
    collation: Option<Arc<Collation>>,
}

#[derive(Clone, Debug)]
pub struct SortField {
    pub path: Path,
    pub descending: bool,
}

/// `{$natural: 1}` is not a sort but an order of reading.
#[derive(Clone, Debug)]
pub enum Order {
    Fields(Sort),
    Natural { reverse: bool },
}

const FIELDS_MAX: usize = 32;

impl Sort {
    /// The `sort` of a `find`: fields, or `$natural` alone. An empty document is no sort: `None`.
    pub fn parse_order(spec: RawDoc<'_>, scope: &Scope) -> Result<Option<Order>> {
        if let Some(natural) = spec.get("$natural") {
            if spec.count() > 1 {
                let message = format!("Cannot include '$natural' in compound sort: {spec}");
                return Err(Error::bad_value(message));
            }
            // Any value goes, as in MongoDB; only its sign matters.
            let reverse = Number::of(natural).is_some_and(|n| n.to_i64_clamped() < 0);
            return Ok(Some(Order::Natural { reverse }));
        }
        Ok(Sort::parse(spec, scope)?.map(Order::Fields))
    }

    /// Fields only, as in `$sort` and `$push`.
    pub fn parse(spec: RawDoc<'_>, scope: &Scope) -> Result<Option<Sort>> {
        let fields = spec.iter().map(|e| parse_field(e.name(), e.value())).collect::<Result<Vec<_>>>()?;
        if fields.len() > FIELDS_MAX {
            return Err(Error::new(Code(13103), "too many compound keys"));
        }
        let sort = || Sort { fields, source: DocBuf::from_raw(spec), collation: scope.collation().clone() };
        Ok((!spec.is_empty()).then(sort))
    }

    /// How it compares strings.
    pub fn collator(&self) -> Collator<'_> {
        Collator::of(&self.collation)
    }

    pub fn fields(&self) -> &[SortField] {
        &self.fields
    }

    pub fn source(&self) -> RawDoc<'_> {
        self.source.as_raw()
    }

    /// Appends the document's sort key. An array sorts by its least element ascending and its greatest descending;
    /// a missing field sorts as null, an empty array below it. Fields that lead through the same array take their
    /// values from the same element; through two arrays side by side they cannot.
    #[inline]
    pub fn key(&self, doc: RawDoc<'_>, out: &mut Vec<u8>) -> Result<()> {
        key::write(&self.fields, Collator::of(&self.collation), doc, None, out).map(drop)
    }

    /// As [`Sort::key`], but false, with `out` in any state, where the key is found to be at or beyond the bound.
    #[inline]
    pub fn key_below(&self, doc: RawDoc<'_>, bound: Option<&[u8]>, out: &mut Vec<u8>) -> Result<bool> {
        key::write(&self.fields, Collator::of(&self.collation), doc, bound, out)
    }
}

fn parse_field(name: &str, direction: ValueRef<'_>) -> Result<SortField> {
    if let ValueRef::Document(meta) = direction {
        return Err(meta_error(meta));
    }
    let Some(number) = Number::of(direction) else {
        return Err(Error::new(Code(15974), format!("Illegal key in $sort specification: {name}: {direction}")));
    };
    let descending = match number.to_i64_clamped() {
        1 => false,
        -1 => true,
        _ => {
            let message = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
            return Err(Error::new(Code(15975), message));
        }
    };
    Ok(SortField { path: field_path::parse(name)?, descending })
}

/// `{field: {$meta: …}}`: what it may say is checked, but nothing that it could sort by is there.
fn meta_error(meta: RawDoc<'_>) -> Error {
    match meta.get("$meta") {
        None => Error::new(Code(17312), "$meta is the only expression supported by $sort right now"),
        Some(_) if meta.count() > 1 => {
            Error::failed_to_parse("Cannot have additional keys in a $meta sort specification")
        }
        Some(ValueRef::String("textScore")) => {
            Error::new(Code(40218), "query requires text score metadata, but it is not available")
        }
        Some(ValueRef::String("randVal" | "searchScore" | "searchHighlights")) => {
            Error::new(Code::CommandNotSupported, "sorting by this $meta is not supported; sort by fields instead")
        }
        Some(other) => Error::new(Code(31138), format!("Illegal $meta sort: $meta: {other}")),
    }
}
