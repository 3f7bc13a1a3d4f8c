//! The walk of [`super::apply`] for a pipeline in which a later stage may put back a field that this one takes out: the
//! field's place is kept. Only what `$project`, `$unset` and `$addFields` have; slower, and rarely needed.

use espalier_value::place::{self, Entry};
use espalier_value::{IndexName, RawDoc, Result, Type, Value, ValueRef, begin_nested, end_nested, push_elem};

use super::tree::{Action, Field, Node};
use crate::expression::Env;

pub(super) struct Keeping<'a> {
    pub env: Env<'a>,
    /// An inclusion keeps places only if it computes something; else MongoDB copies what is there and is done.
    pub reserves: bool,
}

impl<'a> Keeping<'a> {
    /// Writes the fields of a projected document.
    pub fn document(&self, node: &'a Node, doc: RawDoc<'_>, out: &mut Vec<u8>) -> Result<()> {
        let mut placed = vec![false; node.fields.len()];
        for entry in place::all(doc) {
            let (name, raw) = match &entry {
                Entry::Elem(elem) => (elem.name_bytes(), elem.raw()),
                Entry::Place(name, raw) => (*name, *raw),
            };
            let Some(at) = node.find(name) else {
                if node.keeps_rest {
                    out.extend_from_slice(raw);
                }
                continue;
            };
            let field = &node.fields[at];
            placed[at] = match (&field.action, &entry) {
                (Action::Compute(_), _) if node.keeps_rest => {
                    self.compute(field, out)?;
                    true
                }
                (Action::Child(child), Entry::Elem(elem)) => {
                    let before = out.len();
                    self.value(child, name, elem.value(), out)?;
                    if out.len() == before && self.reserves {
                        place::push(out, name);
                    }
                    out.len() > before
                }
                (Action::Child(child), Entry::Place(..)) if node.keeps_rest && child.computes => {
                    self.new_document(child, name, out)?;
                    true
                }
                (Action::Exclude, Entry::Elem(_)) => {
                    place::push(out, name);
                    true
                }
                (Action::Include | Action::Slice(_) | Action::ElemMatch(_), Entry::Elem(elem)) => {
                    out.extend_from_slice(elem.raw());
                    true
                }
                (_, Entry::Place(_, raw)) if node.keeps_rest => {
                    out.extend_from_slice(raw);
                    true
                }
                _ => false,
            };
        }
        for (field, _) in node.fields.iter().zip(placed).filter(|(_, placed)| !placed) {
            match &field.action {
                Action::Compute(_) => self.compute(field, out)?,
                Action::Child(child) if child.computes => self.new_document(child, field.name.as_bytes(), out)?,
                Action::Child(_) if self.reserves => place::push(out, field.name.as_bytes()),
                _ => {}
            }
        }
        Ok(())
    }

    fn compute(&self, field: &'a Field, out: &mut Vec<u8>) -> Result<()> {
        let Action::Compute(expression) = &field.action else { return Ok(()) };
        let value: Value<'a> = expression.eval(&self.env)?;
        match value.as_ref() {
            Some(value) => push_elem(out, &field.name, value),
            None => place::push(out, field.name.as_bytes()),
        }
        Ok(())
    }

    fn new_document(&self, node: &'a Node, name: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let start = begin_nested(out, Type::Document, name);
        self.document(node, RawDoc::EMPTY, out)?;
        end_nested(out, start);
        Ok(())
    }

    fn value(&self, node: &'a Node, name: &[u8], value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<()> {
        match value {
            ValueRef::Document(doc) => {
                let start = begin_nested(out, Type::Document, name);
                self.document(node, doc, out)?;
                end_nested(out, start);
            }
            ValueRef::Array(array) => {
                let start = begin_nested(out, Type::Array, name);
                let mut index = IndexName::new();
                let mut count = 0;
                for element in array.iter() {
                    let before = out.len();
                    self.value(node, index.of(count).as_bytes(), element, out)?;
                    count += usize::from(out.len() > before);
                }
                end_nested(out, start);
            }
            _ if node.computes => self.new_document(node, name, out)?,
            _ if node.keeps_rest => {
                out.push(value.ty() as u8);
                out.extend_from_slice(name);
                out.push(0);
                espalier_value::push_value(out, value);
            }
            _ => {}
        }
        Ok(())
    }
}
