//! The specification of `$addFields` and `$set`: every value is computed, and a document stands for fields below it.

use espalier_value::{Code, Error, Path, RawDoc, Result, ValueRef};

use super::tree::{Action, Node};
use crate::expression::{Expression, Scope, field_path};

pub(super) fn parse(spec: RawDoc<'_>, scope: &Scope) -> Result<Node> {
    let mut parser = Parser { scope, root: Node::new(), seen: Vec::new() };
    for elem in spec {
        let path = field_path::parse(elem.name())?;
        parser.value(&path, elem.value())?;
    }
    parser.root.finish(true);
    Ok(parser.root)
}

struct Parser<'s> {
    scope: &'s Scope,
    root: Node,
    seen: Vec<Path>,
}

impl Parser<'_> {
    fn value(&mut self, path: &Path, value: ValueRef<'_>) -> Result<()> {
        let ValueRef::Document(doc) = value else { return self.compute(path, value) };
        if doc.is_empty() {
            let message = format!("an empty object is not a valid value. Found empty object at path {path}");
            return Err(Error::new(Code(40180), message));
        }
        if doc.iter().any(|e| e.name_bytes().starts_with(b"$")) {
            if doc.count() > 1 {
                let message = format!(
                    "an expression specification must contain exactly one field, the name of the expression. Found {} \
                     fields at path {path}",
                    doc.count()
                );
                return Err(Error::new(Code(40181), message));
            }
            return self.compute(path, value);
        }
        for elem in doc {
            let name = elem.name();
            if name.contains('.') {
                let message = format!("cannot use dotted field name '{name}' in a sub object at path {path}");
                return Err(Error::new(Code(40183), message));
            }
            self.value(&field_path::parse(&format!("{path}.{name}"))?, elem.value())?;
        }
        Ok(())
    }

    fn compute(&mut self, path: &Path, value: ValueRef<'_>) -> Result<()> {
        if let Some(other) = self.seen.iter().find(|seen| seen.is_prefix_of(path) || path.is_prefix_of(seen)) {
            let message =
                format!("specification contains two conflicting paths. Cannot specify both '{path}' and '{other}'");
            return Err(Error::new(Code(40176), message));
        }
        self.seen.push(path.clone());
        self.root.add(path, Action::Compute(Expression::parse(value, self.scope)?), false)
    }
}
