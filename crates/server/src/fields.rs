//! Typed reading of a command's fields, with MongoDB's codes and words for what is unknown, missing, given twice or of the
//! wrong type. A field that is null counts as not given, as in MongoDB.

use espalier_value::number::Number;
use espalier_value::{Code, Elem, Error, RawArray, RawDoc, Result, ValueRef};

/// One field of a command or of a document inside it.
#[derive(Clone, Copy)]
pub struct Field<'a, 'p> {
    elem: Elem<'a>,
    /// The name that errors put before the field's own: `update.updates`.
    parent: &'p str,
}

impl<'a, 'p> Field<'a, 'p> {
    pub fn new(elem: Elem<'a>, parent: &'p str) -> Field<'a, 'p> {
        Field { elem, parent }
    }

    pub fn name(&self) -> &'a str {
        self.elem.name()
    }

    pub fn elem(&self) -> Elem<'a> {
        self.elem
    }

    pub fn value(&self) -> ValueRef<'a> {
        self.elem.value()
    }

    fn is_absent(&self) -> bool {
        self.value().is_nullish()
    }

    pub fn doc(&self) -> Result<Option<RawDoc<'a>>> {
        match self.value() {
            ValueRef::Document(doc) => Ok(Some(doc)),
            _ if self.is_absent() => Ok(None),
            _ => Err(self.wrong_type("object")),
        }
    }

    /// A document that may not be null either.
    pub fn doc_required(&self) -> Result<RawDoc<'a>> {
        self.doc()?.ok_or_else(|| self.wrong_type("object"))
    }

    pub fn array(&self) -> Result<Option<RawArray<'a>>> {
        match self.value() {
            ValueRef::Array(array) => Ok(Some(array)),
            _ if self.is_absent() => Ok(None),
            _ => Err(self.wrong_type("array")),
        }
    }

    pub fn str(&self) -> Result<Option<&'a str>> {
        match self.value() {
            ValueRef::String(text) => Ok(Some(text)),
            _ if self.is_absent() => Ok(None),
            _ => Err(self.wrong_type("string")),
        }
    }

    /// A boolean and nothing else.
    pub fn bool(&self) -> Result<Option<bool>> {
        match self.value() {
            ValueRef::Bool(b) => Ok(Some(b)),
            _ if self.is_absent() => Ok(None),
            _ => Err(self.wrong_type("bool")),
        }
    }

    /// A boolean or a number.
    pub fn bool_or_number(&self) -> Result<Option<bool>> {
        match self.value() {
            ValueRef::Bool(b) => Ok(Some(b)),
            value => match Number::of(value) {
                Some(n) => Ok(Some(!n.is_zero())),
                None if self.is_absent() => Ok(None),
                None => Err(self.wrong_types("bool, long, int, decimal, double")),
            },
        }
    }

    /// Any number, rounded toward zero.
    pub fn long(&self) -> Result<Option<i64>> {
        match Number::of(self.value()) {
            Some(n) => Ok(Some(n.to_i64_clamped())),
            None if self.is_absent() => Ok(None),
            None => Err(self.wrong_types("long, int, decimal, double")),
        }
    }

    /// Any number that is not negative, rounded toward zero.
    pub fn count(&self) -> Result<Option<u64>> {
        let Some(n) = self.long()? else { return Ok(None) };
        match u64::try_from(n) {
            Ok(n) => Ok(Some(n)),
            Err(_) => Err(Error::new(
                Code(51024),
                format!("BSON field '{}' value must be >= 0, actual value '{n}'", self.name()),
            )),
        }
    }

    pub fn wrong_type(&self, expected: &str) -> Error {
        let (path, found) = (self.path(), self.elem.ty().name());
        Error::type_mismatch(format!("BSON field '{path}' is the wrong type '{found}', expected type '{expected}'"))
    }

    fn wrong_types(&self, expected: &str) -> Error {
        let (path, found) = (self.path(), self.elem.ty().name());
        Error::type_mismatch(format!("BSON field '{path}' is the wrong type '{found}', expected types '[{expected}']"))
    }

    pub fn unknown(&self) -> Error {
        Error::new(Code(40415), format!("BSON field '{}' is an unknown field.", self.path()))
    }

    /// Refuses an option that is known but not carried out, unless it is switched off.
    pub fn refuse_unless_false(&self) -> Result<()> {
        match self.bool_or_number()? {
            Some(true) => Err(self.unsupported()),
            _ => Ok(()),
        }
    }

    /// An option that is known but not carried out.
    pub fn unsupported(&self) -> Error {
        let message = format!("the option '{}' of {} is not supported by Espalier", self.name(), self.parent);
        Error::new(Code::CommandNotSupported, message)
    }

    pub fn path(&self) -> String {
        format!("{}.{}", self.parent, self.name())
    }
}

/// A required field that is not there.
pub fn missing(parent: &str, name: &str) -> Error {
    Error::new(Code(40414), format!("BSON field '{parent}.{name}' is missing but a required field"))
}

/// The fields of a document inside a command. Fails on a name given twice.
pub fn fields<'a, 'p>(doc: RawDoc<'a>, parent: &'p str) -> Result<impl Iterator<Item = Field<'a, 'p>>> {
    let mut seen = Seen::default();
    for elem in doc {
        if seen.insert(elem.name_bytes()) {
            check_duplicate(doc, elem, parent)?;
        }
    }
    Ok(doc.iter().map(move |elem| Field { elem, parent }))
}

pub(crate) fn check_duplicate(doc: RawDoc<'_>, elem: Elem<'_>, parent: &str) -> Result<()> {
    let name = elem.name_bytes();
    if doc.iter().filter(|other| other.name_bytes() == name).nth(1).is_none() {
        return Ok(());
    }
    Err(Error::new(Code(40413), format!("BSON field '{parent}.{}' is a duplicate field", elem.name())))
}

/// Which names were seen, as one word: says "perhaps" for a new name now and then, and never "no" for an old one.
#[derive(Default, Clone, Copy)]
pub(crate) struct Seen(u64);

impl Seen {
    /// True if the name may have been seen before.
    pub(crate) fn insert(&mut self, name: &[u8]) -> bool {
        let mix = |i: usize| u64::from(name.get(i).copied().unwrap_or(0));
        let last = u64::from(name.last().copied().unwrap_or(0));
        let hash = (mix(0) << 24 | mix(2) << 16 | last << 8 | name.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bit = 1u64 << (hash >> 58);
        let before = self.0 & bit != 0;
        self.0 |= bit;
        before
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use espalier_value::doc;

    fn field(doc: &espalier_value::DocBuf) -> Field<'_, 'static> {
        Field::new(doc.as_raw().first().unwrap(), "find")
    }

    #[test]
    fn wrong_types_are_named_as_mongodb_names_them() {
        let limit = doc! { "limit": "x" };
        let error = field(&limit).count().unwrap_err();
        assert_eq!(error.code(), Code::TypeMismatch);
        let expected =
            "BSON field 'find.limit' is the wrong type 'string', expected types '[long, int, decimal, double']";
        assert_eq!(error.message(), expected);
        let negative = doc! { "limit": -1 };
        assert_eq!(field(&negative).count().unwrap_err().code(), Code(51024));
        let null = doc! { "limit": ValueRef::Null };
        assert_eq!(field(&null).count().unwrap(), None);
        let double = doc! { "limit": 2.7 };
        assert_eq!(field(&double).count().unwrap(), Some(2));
    }

    #[test]
    fn a_name_given_twice_is_refused_and_similar_names_are_not() {
        let twice = doc! { "aa": 1, "b": 2, "aa": 3 };
        let error = fields(twice.as_raw(), "x").err().unwrap();
        assert_eq!(error.code(), Code(40413));
        // The same first, third and last letter and length: the cheap test cannot tell them apart.
        let similar = doc! { "axbc": 1, "aybc": 2 };
        assert_eq!(fields(similar.as_raw(), "x").unwrap().count(), 2);
    }
}
