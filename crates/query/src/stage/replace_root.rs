//! `$replaceRoot` replaces each document by a computed one.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef};

use super::{Definition, Parse, Parser, Run, Stage, Stages, Transform, one, transform};
use crate::context::Context;
use crate::expression::{Deps, Env, Expression};
use crate::stream::Stream;

pub(super) static REPLACE_ROOT: Definition =
    Definition { name: "$replaceRoot", parse: Parse::Stage(parse), doc: "Replaces each document by a computed one." };

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let ValueRef::Document(spec) = argument else {
        let found = argument.ty().name();
        let message = format!("expected an object as specification for $replaceRoot stage, got {found}");
        return Err(Error::new(Code(40229), message));
    };
    if let Some(other) = spec.iter().find(|e| e.name() != "newRoot") {
        let message = format!("BSON field '$replaceRoot.{}' is an unknown field.", other.name());
        return Err(Error::new(Code(40415), message));
    }
    let Some(root) = spec.get("newRoot") else {
        return Err(Error::new(Code(40414), "BSON field '$replaceRoot.newRoot' is missing but a required field"));
    };
    let root = Expression::parse(root, parser.scope)?;
    one(ReplaceRoot { name: REPLACE_ROOT.name, what: "'newRoot' expression", root })
}

#[derive(Debug)]
pub(super) struct ReplaceRoot {
    pub name: &'static str,
    /// What the expression is called in messages.
    pub what: &'static str,
    pub root: Expression,
}

impl Stage for ReplaceRoot {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        transform::run(self, input, run)
    }

    fn needs(&self, _after: &Deps) -> Deps {
        self.root.dependencies()
    }

    fn transform(&self) -> Option<&dyn Transform> {
        Some(self)
    }
}

impl Transform for ReplaceRoot {
    fn apply(&self, doc: RawDoc<'_>, context: &Context, out: &mut DocBuf) -> Result<()> {
        let env = Env::new(doc, context);
        let value = self.root.eval(&env)?;
        let Some(ValueRef::Document(new)) = value.as_ref() else {
            let (found, ty) = match value.as_ref() {
                Some(found) => (found.to_string(), found.ty().name()),
                None => ("MISSING".to_string(), "missing"),
            };
            let message = format!(
                "{} must evaluate to an object, but resulting value was: {found}. Type of resulting value: '{ty}'.",
                self.what
            );
            return Err(Error::new(Code(40228), message));
        };
        out.clear();
        out.append_with(|bytes| bytes.extend_from_slice(new.iter().rest()));
        Ok(())
    }
}
