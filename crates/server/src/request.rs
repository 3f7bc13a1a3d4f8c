//! A command as it came in: its name, its argument, the fields every command may carry, and its own fields, all found in
//! one pass over the body.

use espalier_store::Namespace;
use espalier_value::{Code, Elem, Error, RawArray, RawDoc, Result, ValueRef, validate};
use espalier_wire::{Documents, Sequences};

use crate::dispatch::check_size;
use crate::fields::{self, Field, Seen};
use crate::generic::Generic;

/// The database of users that another authority vouches for.
pub const EXTERNAL: &str = "$external";

pub struct Request<'a> {
    /// As the client wrote it, alias or not.
    pub name: &'a str,
    /// The value of the first field: mostly the collection.
    pub argument: ValueRef<'a>,
    pub db: &'a str,
    pub body: RawDoc<'a>,
    pub generic: Generic<'a>,
    sequences: Sequences<'a>,
    own: Own<'a>,
}

/// The fields that only this command knows, in order. Held in place, because few commands have more.
struct Own<'a> {
    first: [Option<Elem<'a>>; Own::IN_PLACE],
    rest: Vec<Elem<'a>>,
    len: usize,
}

impl<'a> Own<'a> {
    const IN_PLACE: usize = 10;

    fn push(&mut self, elem: Elem<'a>) {
        match self.first.get_mut(self.len) {
            Some(slot) => *slot = Some(elem),
            None => self.rest.push(elem),
        }
        self.len += 1;
    }

    fn iter(&self) -> impl Iterator<Item = Elem<'a>> {
        self.first.iter().map_while(|slot| *slot).chain(self.rest.iter().copied())
    }
}

impl<'a> Request<'a> {
    /// Parses a body that has been validated. `db` is given where it does not stand in the body (OP_QUERY).
    pub fn parse(body: RawDoc<'a>, sequences: Sequences<'a>, db: Option<&'a str>) -> Result<Request<'a>> {
        let mut elems = body.iter();
        let Some(command) = elems.next() else {
            return Err(Error::new(Code::FailedToParse, "the command has no name: its document is empty"));
        };
        let mut own = Own { first: [None; Own::IN_PLACE], rest: Vec::new(), len: 0 };
        let mut generic = Generic::default();
        let mut in_body = None;
        let mut seen = Seen::default();
        seen.insert(command.name_bytes());
        for elem in elems {
            if seen.insert(elem.name_bytes()) {
                fields::check_duplicate(body, elem, command.name())?;
            }
            if elem.name_bytes() == b"$db" {
                in_body = Some(elem.value());
            } else if !generic.take(elem)? {
                own.push(elem);
            }
        }
        let db = match (in_body, db) {
            (Some(ValueRef::String(db)), _) | (None, Some(db)) => db,
            (Some(other), _) => {
                let found = other.ty().name();
                let message = format!("BSON field '$db' is the wrong type '{found}', expected type 'string'");
                return Err(Error::type_mismatch(message));
            }
            (None, None) => return Err(Error::new(Code(40571), "OP_MSG requests require a $db argument")),
        };
        // Users that are known elsewhere belong to a database that can have no collections.
        if db != EXTERNAL {
            espalier_store::namespace::check_database(db)?;
        }
        generic.check()?;
        for sequence in sequences.iter() {
            if body.elem(sequence.identifier).is_some() {
                let path = format!("{}.{}", command.name(), sequence.identifier);
                return Err(Error::new(Code(40413), format!("BSON field '{path}' is a duplicate field")));
            }
        }
        Ok(Request { name: command.name(), argument: command.value(), db, body, generic, sequences, own })
    }

    /// The same command seen from inside another one (`explain`).
    pub fn inner<'b>(&'b self, body: RawDoc<'b>) -> Result<Request<'b>> {
        Request::parse(body, Sequences::default(), Some(self.db))
    }

    /// The command's own fields. `parent` is what errors call the command.
    pub fn fields<'p>(&self, parent: &'p str) -> impl Iterator<Item = Field<'a, 'p>> {
        self.own.iter().map(move |elem| Field::new(elem, parent))
    }

    /// Refuses every own field, for commands that take none.
    pub fn no_fields(&self, parent: &str) -> Result<()> {
        self.fields(parent).next().map_or(Ok(()), |field| Err(field.unknown()))
    }

    /// The argument as the name of a collection of this database.
    pub fn namespace(&self) -> Result<Namespace> {
        match self.argument {
            ValueRef::String(name) => Namespace::checked(self.db, name),
            ValueRef::Symbol(name) => Namespace::checked(self.db, name),
            other => Err(Error::bad_value(format!("collection name has invalid type {}", other.ty().name()))),
        }
    }

    /// As [`Request::namespace`], for the commands that call anything but a string an invalid name.
    pub fn namespace_of_name(&self) -> Result<Namespace> {
        match self.argument {
            ValueRef::String(_) | ValueRef::Symbol(_) => self.namespace(),
            other => {
                let message = format!("collection name has invalid type {}", other.ty().name());
                Err(Error::new(Code::InvalidNamespace, message))
            }
        }
    }

    /// The documents of an array argument that may come beside the body: `documents`, `updates`, `deletes`.
    pub fn sequence(&self, name: &str) -> Option<Documents<'a>> {
        self.sequences.get(name)
    }

    /// A sequence that the command does not know.
    pub fn check_sequences(&self, known: &str) -> Result<()> {
        match self.sequences.iter().find(|sequence| sequence.identifier != known) {
            Some(other) => Err(Error::new(
                Code(40415),
                format!("BSON field '{}.{}' is an unknown field.", self.name, other.identifier),
            )),
            None => Ok(()),
        }
    }
}

/// Documents given as an array field or as a sequence.
#[derive(Clone, Copy)]
pub enum Batch<'a> {
    Array(RawArray<'a>),
    Sequence(Documents<'a>),
}

impl<'a> Batch<'a> {
    pub fn len(&self) -> usize {
        match self {
            Batch::Array(array) => array.len(),
            Batch::Sequence(documents) => documents.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The documents in order. `path` is the field's name in errors.
    pub fn docs(&self, path: &'a str) -> BatchDocs<'a> {
        match self {
            Batch::Array(array) => BatchDocs::Array { elems: array.elems(), path },
            Batch::Sequence(documents) => BatchDocs::Sequence(*documents),
        }
    }
}

pub enum BatchDocs<'a> {
    Array { elems: espalier_value::Elems<'a>, path: &'a str },
    Sequence(Documents<'a>),
}

impl<'a> Iterator for BatchDocs<'a> {
    type Item = Result<RawDoc<'a>>;

    fn next(&mut self) -> Option<Result<RawDoc<'a>>> {
        match self {
            BatchDocs::Array { elems, path } => {
                let elem = elems.next()?;
                Some(match elem.value() {
                    ValueRef::Document(doc) => Ok(doc),
                    _ => Err(Error::type_mismatch(format!(
                        "BSON field '{path}.{}' is the wrong type '{}', expected type 'object'",
                        elem.name(),
                        elem.ty().name()
                    ))),
                })
            }
            // The body was validated as a whole; what came beside it was not yet.
            BatchDocs::Sequence(documents) => documents.next().map(|doc| check_size(doc).and_then(|()| validate(doc))),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use espalier_value::doc;

    fn parse(body: &espalier_value::DocBuf) -> Result<Request<'_>> {
        Request::parse(body.as_raw(), Sequences::default(), None)
    }

    #[test]
    fn own_and_generic_fields_are_told_apart() {
        let mut body = doc! { "find": "c", "filter": RawDoc::EMPTY, "$db": "test", "maxTimeMS": 5, "limit": 1 };
        for i in 0..20 {
            body.append(&format!("x{i}"), i);
        }
        let request = parse(&body).unwrap();
        assert_eq!((request.name, request.db), ("find", "test"));
        assert_eq!(request.generic.max_time_ms, Some(5));
        let names: Vec<_> = request.fields("find").map(|f| f.name()).collect();
        assert_eq!(names.len(), 22);
        assert_eq!(names[..3], ["filter", "limit", "x0"]);
        assert_eq!(names[21], "x19");
    }

    #[test]
    fn what_cannot_be_a_command_is_refused() {
        let code = |body: &espalier_value::DocBuf| parse(body).err().unwrap().code();
        assert_eq!(code(&doc! {}), Code::FailedToParse);
        assert_eq!(code(&doc! { "ping": 1 }), Code(40571));
        assert_eq!(code(&doc! { "ping": 1, "$db": 1 }), Code::TypeMismatch);
        assert_eq!(code(&doc! { "ping": 1, "$db": "a.b" }), Code::InvalidNamespace);
        assert_eq!(code(&doc! { "ping": 1, "$db": "a", "x": 1, "x": 2 }), Code(40413));
    }
}
