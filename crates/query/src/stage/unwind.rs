//! `$unwind` gives one document for each element of an array, with the element in the array's place.

use std::sync::Arc;

use espalier_value::path::Part;
use espalier_value::place::{self, Entry};
use espalier_value::{
    Code, DocBuf, Elems, Error, Path, RawArray, RawDoc, Result, Type, ValueRef, begin_nested, end_nested, push_elem,
};

use super::origin::{Ahead, Origin, first};
use super::places::{Places, Role};
use super::{Definition, Parse, Parser, Run, Stage, Stages, one};
use crate::context::Context;
use crate::expression::{Deps, field_path};
use crate::stream::{MappedParts, Parts, Replaced, Stream};

pub(super) static UNWIND: Definition =
    Definition { name: "$unwind", parse: Parse::Stage(parse), doc: "Gives one document for each element of an array." };

#[derive(Clone, Debug)]
pub struct Unwind {
    pub(super) path: Path,
    /// Documents without an element come out once instead of not at all.
    pub(super) preserve: bool,
    /// Where the element's index goes.
    pub(super) index: Option<Path>,
    /// An empty array that is taken out keeps its place.
    pub(super) keeps_place: bool,
}

fn parse(argument: ValueRef<'_>, _parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let (mut path, mut preserve, mut index) = ("", false, None);
    match argument {
        ValueRef::String(text) => path = text,
        ValueRef::Document(spec) => {
            for elem in spec {
                let found = elem.ty().name();
                match (elem.name(), elem.value()) {
                    ("path", ValueRef::String(text)) => path = text,
                    ("path", _) => {
                        return refuse(28808, format!("expected a string as the path for $unwind stage, got {found}"));
                    }
                    ("preserveNullAndEmptyArrays", ValueRef::Bool(flag)) => preserve = flag,
                    ("preserveNullAndEmptyArrays", _) => {
                        let what = "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage";
                        return refuse(28809, format!("{what}, got {found}"));
                    }
                    ("includeArrayIndex", ValueRef::String(text)) if !text.is_empty() => {
                        if text.starts_with('$') {
                            let what = "includeArrayIndex option to $unwind stage should not be prefixed with a '$'";
                            return refuse(28822, format!("{what}: {text}"));
                        }
                        index = Some(field_path::parse(text)?);
                    }
                    ("includeArrayIndex", _) => {
                        let what = "expected a non-empty string for the includeArrayIndex  option to $unwind stage";
                        return refuse(28810, format!("{what}, got {found}"));
                    }
                    (other, _) => return refuse(28811, format!("unrecognized option to $unwind stage: {other}")),
                }
            }
        }
        other => {
            let what = "expected either a string or an object as specification for $unwind stage";
            return refuse(15981, format!("{what}, got {}", other.ty().name()));
        }
    }
    if path.is_empty() {
        return refuse(28812, "no path specified to $unwind stage".into());
    }
    let Some(path) = path.strip_prefix('$') else {
        return refuse(28818, format!("path option to $unwind stage should be prefixed with a '$': {path}"));
    };
    one(Unwind { path: field_path::parse(path)?, preserve, index, keeps_place: false })
}

impl Stage for Unwind {
    fn name(&self) -> &'static str {
        UNWIND.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Unwinding::new(self, input, run.context.clone(), false)))
    }

    fn needs(&self, after: &Deps) -> Deps {
        let mut needs = after.clone();
        needs.add(self.path.as_str());
        needs
    }

    fn ahead(&self) -> Ahead {
        Ahead::Paths
    }

    fn origin(&self, path: &str) -> Origin {
        let name = first(path);
        let index = self.index.as_ref().map(Path::first);
        if name == self.path.first() || Some(name) == index { Origin::Made } else { Origin::Same }
    }

    fn role(&self) -> Role<'_> {
        let vacates = if self.preserve { vec![self.path.first()] } else { Vec::new() };
        Role::Changes { vacates, fills: Vec::new() }
    }

    fn with_places(&self, places: Places) -> Option<Arc<dyn Stage>> {
        Some(Arc::new(Unwind { keeps_place: places == Places::Keep, ..self.clone() }))
    }

    fn as_unwind(&self) -> Option<&Unwind> {
        Some(self)
    }
}

struct Unwinding {
    stage: Arc<Unwind>,
    input: Box<dyn Stream>,
    context: Arc<Context>,
    /// The array of the input document that is being unwound.
    open: Option<Open>,
    current: DocBuf,
    scratch: DocBuf,
    /// The input document itself is the current one.
    passing: bool,
    /// Arrays are lent apart from their documents. What is open is then the array that is lent.
    apart: bool,
}

/// Positions in the input document, which stays where it is until the next `advance` of the input.
#[derive(Clone, Copy)]
struct Open {
    /// Of the next element.
    next: usize,
    /// Of the end of the last one.
    end: usize,
    index: i64,
}

impl Stream for Unwinding {
    fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(open) = self.open {
                if !self.apart && self.element(open) {
                    return Ok(true);
                }
                self.open = None;
            }
            if !self.input.advance()? {
                return Ok(false);
            }
            self.context.interrupt.check()?;
            let doc = self.input.doc();
            match at(doc, self.stage.path.parts()) {
                Some(ValueRef::Array(array)) if !array.is_empty() => {
                    let start = array.as_bytes().as_ptr() as usize - doc.as_bytes().as_ptr() as usize;
                    self.open = Some(Open { next: start + 4, end: start + array.as_bytes().len() - 1, index: 0 });
                    if self.apart {
                        self.passing = true;
                        return Ok(true);
                    }
                }
                value if self.stage.preserve || !matches!(value, None | Some(ValueRef::Array(_))) => {
                    if !self.stage.preserve && value.is_some_and(ValueRef::is_nullish) {
                        continue;
                    }
                    let empty = matches!(value, Some(ValueRef::Array(_)));
                    self.single(empty);
                    return Ok(true);
                }
                _ => {}
            }
        }
    }

    fn doc(&self) -> RawDoc<'_> {
        if self.passing { self.input.doc() } else { self.current.as_raw() }
    }

    fn lend_apart(&mut self, deps: &Deps) -> Option<Path> {
        let path = &self.stage.path;
        let fits =
            |mut reads: Box<dyn Iterator<Item = &str> + '_>| reads.all(|read| Replaced::allows(path, &Path::new(read)));
        self.apart = self.stage.index.is_none() && deps.paths().is_some_and(|reads| fits(Box::new(reads)));
        self.apart.then(|| path.clone())
    }

    fn values(&self) -> Option<RawArray<'_>> {
        let open = self.open.filter(|_| self.apart)?;
        RawArray::new(self.input.doc().as_bytes().get(open.next - 4..=open.end)?)
    }

    fn parts(&mut self) -> Option<Box<dyn Parts>> {
        let (stage, context, apart) = (Arc::clone(&self.stage), Arc::clone(&self.context), self.apart);
        let input = self.input.parts()?;
        let map = move |input| -> Box<dyn Stream> {
            Box::new(Unwinding::new(Arc::clone(&stage), input, Arc::clone(&context), apart))
        };
        Some(Box::new(MappedParts { input, map }))
    }
}

impl Unwinding {
    fn new(stage: Arc<Unwind>, input: Box<dyn Stream>, context: Arc<Context>, apart: bool) -> Unwinding {
        let (current, scratch) = (DocBuf::new(), DocBuf::new());
        Unwinding { stage, input, context, open: None, current, scratch, passing: false, apart }
    }

    /// Writes the document for the next element; false if there is none.
    #[inline]
    fn element(&mut self, open: Open) -> bool {
        let doc = self.input.doc();
        let Some(elems) = doc.as_bytes().get(open.next..open.end) else { return false };
        let Some(elem) = Elems::new(elems).next() else { return false };
        let next = open.next + elem.raw().len();
        self.open = Some(Open { next, index: open.index + 1, ..open });
        replace(doc, self.stage.path.parts(), Some(elem.value()), &mut self.current);
        self.note_index(ValueRef::Int64(open.index));
        self.passing = false;
        true
    }

    /// A document that comes out once: its value is no array, or there is none and it is kept all the same.
    fn single(&mut self, empty: bool) {
        let doc = self.input.doc();
        self.passing = !empty && self.stage.index.is_none();
        if self.passing {
            return;
        }
        if empty {
            if self.stage.keeps_place {
                self.current.clear();
                self.current.append_with(|bytes| vacate(doc, self.stage.path.parts(), bytes));
            } else {
                replace(doc, self.stage.path.parts(), None, &mut self.current);
            }
        } else {
            self.current.clear();
            self.current.append_with(|bytes| bytes.extend_from_slice(doc.iter().rest()));
        }
        self.note_index(ValueRef::Null);
    }

    fn note_index(&mut self, index: ValueRef<'_>) {
        if let Some(path) = &self.stage.index {
            replace(self.current.as_raw(), path.parts(), Some(index), &mut self.scratch);
            std::mem::swap(&mut self.current, &mut self.scratch);
        }
    }
}

/// Writes the fields of the document with a kept place for the value at the path.
fn vacate(doc: RawDoc<'_>, parts: &[Part], out: &mut Vec<u8>) {
    let Some((part, rest)) = parts.split_first() else { return };
    for entry in place::all(doc) {
        match entry {
            Entry::Elem(elem) if elem.name_bytes() == part.name().as_bytes() => match elem.value() {
                ValueRef::Document(inner) if !rest.is_empty() => {
                    let start = begin_nested(out, Type::Document, elem.name_bytes());
                    vacate(inner, rest, out);
                    end_nested(out, start);
                }
                _ => place::push(out, elem.name_bytes()),
            },
            Entry::Elem(elem) => out.extend_from_slice(elem.raw()),
            Entry::Place(_, raw) => out.extend_from_slice(raw),
        }
    }
}

/// The value at a path through documents only.
fn at<'a>(doc: RawDoc<'a>, parts: &[Part]) -> Option<ValueRef<'a>> {
    let (part, rest) = parts.split_first()?;
    let value = doc.get(part.name())?;
    if rest.is_empty() { Some(value) } else { at(value.as_doc()?, rest) }
}

/// Writes the document with another value at the path, or none. What is in the way of the path is replaced by
/// documents.
pub(crate) fn replace(doc: RawDoc<'_>, parts: &[Part], value: Option<ValueRef<'_>>, out: &mut DocBuf) {
    out.clear();
    out.append_with(|bytes| replace_in(doc, parts, value, bytes));
}

fn replace_in(doc: RawDoc<'_>, parts: &[Part], value: Option<ValueRef<'_>>, out: &mut Vec<u8>) {
    let Some((part, rest)) = parts.split_first() else { return };
    let write = |inner: RawDoc<'_>, out: &mut Vec<u8>| match (rest, value) {
        ([], Some(value)) => push_elem(out, part.name(), value),
        ([], None) => {}
        (rest, value) => {
            let start = begin_nested(out, Type::Document, part.name().as_bytes());
            replace_in(inner, rest, value, out);
            end_nested(out, start);
        }
    };
    let mut elems = doc.iter();
    let all = elems.rest();
    while let Some(elem) = elems.next() {
        if elem.name_bytes() == part.name().as_bytes() {
            // Before and after are copied whole.
            let end = all.len() - elems.rest().len();
            out.extend_from_slice(&all[..end - elem.raw().len()]);
            write(elem.value().as_doc().unwrap_or(RawDoc::EMPTY), out);
            out.extend_from_slice(elems.rest());
            return;
        }
    }
    out.extend_from_slice(all);
    write(RawDoc::EMPTY, out);
}
