//! From documents to the values that a group takes of them: the key's, then one for each accumulator.

use espalier_value::{Error, Path, RawArray, RawDoc, Result, ValueRef};

use super::Group;
use super::inputs::{Fields, From, Inputs};
use crate::context::Context;
use crate::expression::{Env, field_path};
use crate::stream::{Replaced, Stream};

/// Where the values go: into the groups, or into columns.
pub(super) trait Sink {
    /// Begins the values of a document.
    fn key(&mut self, id: ValueRef<'_>) -> Result<()>;

    /// Whether the accumulator wants no more values of this document's group.
    fn is_full(&self, accumulator: usize) -> bool;

    fn value(&mut self, accumulator: usize, value: Option<ValueRef<'_>>) -> Result<()>;

    /// In the place of a value that could not be computed.
    fn failure(&mut self, error: Error) -> Result<()>;

    /// Ends the values of a document.
    fn end(&mut self) -> Result<()>;
}

#[derive(Clone, Copy)]
pub(super) struct Feeding<'g> {
    pub group: &'g Group,
    pub inputs: &'g Inputs,
    /// The path of the array that is lent apart.
    pub apart: Option<&'g Path>,
    pub context: &'g Context,
}

impl Feeding<'_> {
    /// The document that the stream stands at.
    #[inline]
    pub fn feed(&self, input: &dyn Stream, sink: &mut impl Sink) -> Result<()> {
        match self.apart {
            None => self.document(input.doc(), sink),
            Some(path) => self.apart(input.doc(), path, input.values(), sink),
        }
    }

    #[inline]
    fn document(&self, doc: RawDoc<'_>, sink: &mut impl Sink) -> Result<()> {
        let mut fields = Fields::new();
        self.inputs.read(doc, &mut fields);
        self.take(doc, &fields, None, None, sink)
    }

    /// A document and the values that come in the place of what it has at the path; if there are none, the document is
    /// complete.
    fn apart(&self, doc: RawDoc<'_>, path: &Path, values: Option<RawArray<'_>>, sink: &mut impl Sink) -> Result<()> {
        let mut fields = Fields::new();
        self.inputs.read(doc, &mut fields);
        let Some(values) = values else {
            let value = field_path::walk(doc, path);
            return self.element(doc, &fields, value.as_ref(), None, sink);
        };
        for value in values.iter() {
            self.element(doc, &fields, Some(value), Some(Replaced { path, value }), sink)?;
        }
        Ok(())
    }

    #[inline]
    fn element(
        &self,
        doc: RawDoc<'_>,
        fields: &[Option<ValueRef<'_>>],
        value: Option<ValueRef<'_>>,
        replaced: Option<Replaced<'_>>,
        sink: &mut impl Sink,
    ) -> Result<()> {
        // What is no document has no fields; the documents of an array are left to the expressions.
        let inner_doc = value.and_then(ValueRef::as_doc).unwrap_or(RawDoc::EMPTY);
        let mut inner = Fields::new();
        self.inputs.inner.read(inner_doc, &mut inner);
        self.take(doc, fields, Some(Element { value, inner: &inner }), replaced, sink)
    }

    #[inline]
    fn take(
        &self,
        doc: RawDoc<'_>,
        fields: &[Option<ValueRef<'_>>],
        element: Option<Element<'_>>,
        replaced: Option<Replaced<'_>>,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let env = Env::new(doc, self.context).with(replaced);
        for (at, from) in self.inputs.from.iter().enumerate() {
            let computed;
            let value: Option<ValueRef<'_>> = match (from, &element) {
                (From::Field(name), _) => fields[*name],
                (From::Constant, _) => self.group.expression(at).as_constant().and_then(|value| value.as_ref()),
                (From::Element, Some(element)) => element.value,
                (From::Inner(name), Some(element)) if !element.is_array() => element.inner[*name],
                _ if at > 0 && sink.is_full(at - 1) => continue,
                _ => {
                    computed = match self.group.expression(at).eval(&env) {
                        Ok(computed) => computed,
                        Err(error) if at == 0 => return Err(error),
                        Err(error) => {
                            sink.failure(error)?;
                            continue;
                        }
                    };
                    computed.as_ref()
                }
            };
            match at.checked_sub(1) {
                None => sink.key(value.unwrap_or(ValueRef::Null))?,
                Some(accumulator) => sink.value(accumulator, value)?,
            }
        }
        sink.end()
    }
}

/// A value that is lent apart from its document, and those of its fields that are read.
struct Element<'a> {
    value: Option<ValueRef<'a>>,
    inner: &'a [Option<ValueRef<'a>>],
}

impl Element<'_> {
    #[inline]
    fn is_array(&self) -> bool {
        matches!(self.value, Some(ValueRef::Array(_)))
    }
}
