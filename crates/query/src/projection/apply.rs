//! One walk over a raw document along the tree. Fields come out in the document's order; what is computed for a
//! field that an exclusion or `$addFields` finds takes its place, everything else computed is appended in the order
//! of the specification.

use espalier_value::{
    Code, Error, IndexName, RawArray, RawDoc, Result, Type, Value, ValueRef, begin_nested, end_nested, push_elem,
};

use super::tree::{Action, Field, Node};
use crate::expression::Env;

/// What stays the same during one application.
pub(super) struct Run<'a> {
    pub env: Env<'a>,
    /// Where the filter matched.
    pub position: Option<usize>,
}

/// What the way from the top was like.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// An array was met: a positional `$` has been used up, since it means the first array of its path.
    through_array: bool,
    /// An array inside an array: `$slice` does not reach in there.
    nested_array: bool,
}

impl Place {
    pub const TOP: Place = Place { through_array: false, nested_array: false };
}

impl<'a> Run<'a> {
    /// Writes the fields of a projected document.
    pub fn document(&self, node: &'a Node, doc: RawDoc<'_>, place: Place, out: &mut Vec<u8>) -> Result<()> {
        // One bit for each of the first 64 fields; a longer list is rare and looks into the document instead.
        let mut seen: u64 = 0;
        let mut left = node.fields.len();
        for elem in doc {
            let Some(at) = node.find(elem.name_bytes()) else {
                if node.keeps_rest {
                    out.extend_from_slice(elem.raw());
                }
                continue;
            };
            seen |= 1u64.checked_shl(at as u32).unwrap_or(0);
            let field = &node.fields[at];
            match &field.action {
                Action::Include if field.positional => {
                    self.child(None, field, elem.name_bytes(), elem.value(), place, out)?;
                }
                Action::Include => out.extend_from_slice(elem.raw()),
                Action::Exclude => {}
                Action::Child(child) => {
                    self.child(Some(child), field, elem.name_bytes(), elem.value(), place, out)?;
                }
                Action::Slice(slice) => match elem.value() {
                    ValueRef::Array(array) if !place.nested_array => {
                        let start = begin_nested(out, Type::Array, elem.name_bytes());
                        slice.write(array, out);
                        end_nested(out, start);
                    }
                    _ => out.extend_from_slice(elem.raw()),
                },
                Action::Compute(_) | Action::ElemMatch(_) if node.keeps_rest => self.compute(field, out)?,
                Action::Compute(_) | Action::ElemMatch(_) => {}
            }
            left -= usize::from(left > 0);
            if left == 0 && !node.keeps_rest {
                break;
            }
        }
        self.append(node, doc, seen, place, out)
    }

    /// What is computed and has not taken the place of an existing field.
    fn append(&self, node: &'a Node, doc: RawDoc<'_>, seen: u64, place: Place, out: &mut Vec<u8>) -> Result<()> {
        for (at, field) in node.fields.iter().enumerate() {
            let was_seen = || match 1u64.checked_shl(at as u32) {
                Some(bit) => seen & bit != 0,
                None => doc.elem(&field.name).is_some(),
            };
            match &field.action {
                Action::Compute(_) | Action::ElemMatch(_) if !(node.keeps_rest && was_seen()) => {
                    self.compute(field, out)?;
                }
                Action::Child(child) if child.computes && !was_seen() => {
                    let start = begin_nested(out, Type::Document, field.name.as_bytes());
                    self.document(child, RawDoc::EMPTY, place, out)?;
                    end_nested(out, start);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn compute(&self, field: &'a Field, out: &mut Vec<u8>) -> Result<()> {
        match &field.action {
            Action::Compute(expression) => {
                let value: Value<'a> = expression.eval(&self.env)?;
                if let Some(value) = value.as_ref() {
                    push_elem(out, &field.name, value);
                }
            }
            Action::ElemMatch(filter) => {
                let matched = filter.matches_at(self.env.root(), self.env.context)?;
                if let Some(position) = matched.and_then(|m| m.position)
                    && let Some(ValueRef::Array(array)) = self.env.root().get(&field.name)
                    && let Some(element) = array.get(position)
                {
                    let start = begin_nested(out, Type::Array, field.name.as_bytes());
                    push_elem(out, "0", element);
                    end_nested(out, start);
                }
            }
            Action::Include | Action::Exclude | Action::Child(_) | Action::Slice(_) => {}
        }
        Ok(())
    }

    /// Projects the value of a field that has a node, or that ends in a positional `$` (no node).
    fn child(
        &self,
        node: Option<&'a Node>,
        field: &Field,
        name: &[u8],
        value: ValueRef<'_>,
        place: Place,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match value {
            ValueRef::Array(array) if field.positional && !place.through_array => {
                let start = begin_nested(out, Type::Array, name);
                let before = out.len();
                let element = self.element(array)?;
                let place = Place { through_array: true, ..place };
                match node {
                    Some(node) => {
                        self.value(node, b"0", element, place, out)?;
                        if out.len() == before {
                            return Err(mismatch());
                        }
                    }
                    None => push_elem(out, "0", element),
                }
                end_nested(out, start);
                Ok(())
            }
            _ => match node {
                Some(node) => self.value(node, name, value, place, out),
                None => {
                    write(out, name, value);
                    Ok(())
                }
            },
        }
    }

    /// The array element that the filter matched.
    fn element<'d>(&self, array: RawArray<'d>) -> Result<ValueRef<'d>> {
        let Some(position) = self.position else {
            let message = "positional operator '.$' couldn't find a matching element in the array";
            return Err(Error::new(Code(51246), message));
        };
        array.get(position).ok_or_else(mismatch)
    }

    /// Projects a value; one that has no fields is dropped, kept, or replaced by what is computed below it.
    fn value(&self, node: &'a Node, name: &[u8], value: ValueRef<'_>, place: Place, out: &mut Vec<u8>) -> Result<()> {
        match value {
            ValueRef::Document(doc) => {
                let start = begin_nested(out, Type::Document, name);
                self.document(node, doc, place, out)?;
                end_nested(out, start);
            }
            ValueRef::Array(array) => {
                let start = begin_nested(out, Type::Array, name);
                self.elements(node, array, place, out)?;
                end_nested(out, start);
            }
            _ if node.computes => {
                let start = begin_nested(out, Type::Document, name);
                self.document(node, RawDoc::EMPTY, place, out)?;
                end_nested(out, start);
            }
            _ if node.keeps_rest => write(out, name, value),
            _ => {}
        }
        Ok(())
    }

    fn elements(&self, node: &'a Node, array: RawArray<'_>, place: Place, out: &mut Vec<u8>) -> Result<()> {
        let mut index = IndexName::new();
        let mut count = 0;
        for element in array.iter() {
            let before = out.len();
            let nested_array = place.nested_array || matches!(element, ValueRef::Array(_));
            let place = Place { through_array: true, nested_array };
            self.value(node, index.of(count).as_bytes(), element, place, out)?;
            count += usize::from(out.len() > before);
        }
        Ok(())
    }
}

fn write(out: &mut Vec<u8>, name: &[u8], value: ValueRef<'_>) {
    out.push(value.ty() as u8);
    out.extend_from_slice(name);
    out.push(0);
    espalier_value::push_value(out, value);
}

fn mismatch() -> Error {
    Error::new(Code(51247), "positional operator '.$' element mismatch")
}
