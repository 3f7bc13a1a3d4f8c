//! `$redact` leaves out parts of documents by their own content: an expression says for each document, from the
//! outside in, whether to keep it, to leave it out, or to look at the documents inside.

use std::sync::Arc;

use espalier_value::{
    Code, DocBuf, Error, IndexName, RawArray, RawDoc, Result, Type, ValueRef, begin_nested, end_nested,
};

use super::{Definition, Parse, Parser, Run, Stage, Stages, one};
use crate::context::Context;
use crate::expression::{Deps, Env, Expression};
use crate::stream::Stream;

pub(super) static REDACT: Definition = Definition {
    name: "$redact",
    parse: Parse::Stage(parse),
    doc: "Leaves out parts of documents by their own content.",
};

/// The variables that an expression can give, with their values: MongoDB's too are these strings.
const ANSWERS: [(&str, &str); 3] = [("DESCEND", "descend"), ("KEEP", "keep"), ("PRUNE", "prune")];

#[derive(Debug)]
struct Redact {
    expression: Expression,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let scope = ANSWERS.iter().fold(parser.scope.with("CURRENT"), |scope, (name, _)| scope.with(name));
    one(Redact { expression: Expression::parse(argument, &scope)? })
}

impl Stage for Redact {
    fn name(&self) -> &'static str {
        REDACT.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Redacted { stage: self, input, context: run.context.clone(), current: DocBuf::new() }))
    }

    fn needs(&self, _after: &Deps) -> Deps {
        Deps::whole()
    }
}

struct Redacted {
    stage: Arc<Redact>,
    input: Box<dyn Stream>,
    context: Arc<Context>,
    current: DocBuf,
}

impl Stream for Redacted {
    fn advance(&mut self) -> Result<bool> {
        while self.input.advance()? {
            self.context.interrupt.check()?;
            let root = self.input.doc();
            let pass = Pass { stage: &self.stage, root, context: &self.context };
            self.current.clear();
            if self.current.append_with(|out| pass.document(root, out))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }
}

struct Pass<'a> {
    stage: &'a Redact,
    root: RawDoc<'a>,
    context: &'a Context,
}

impl<'a> Pass<'a> {
    /// Writes what is left of a document's fields; false if the document itself is left out.
    fn document(&self, doc: RawDoc<'a>, out: &mut Vec<u8>) -> Result<bool> {
        let mut env = Env::new(self.root, self.context);
        env.push(Some(ValueRef::Document(doc)));
        ANSWERS.iter().for_each(|(_, value)| env.push(Some(ValueRef::String(value))));
        let answer = self.stage.expression.eval(&env)?;
        match answer.as_ref() {
            Some(ValueRef::String("keep")) => out.extend_from_slice(doc.iter().rest()),
            Some(ValueRef::String("prune")) => return Ok(false),
            Some(ValueRef::String("descend")) => {
                for elem in doc {
                    self.value(elem.name_bytes(), elem.raw(), elem.value(), out)?;
                }
            }
            other => {
                let found = other.map_or_else(|| "nothing".to_string(), |value| value.to_string());
                let message = format!(
                    "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and \
                     $$PRUNE, but returned {found}"
                );
                return Err(Error::new(Code(17053), message));
            }
        }
        Ok(true)
    }

    fn value(&self, name: &[u8], raw: &[u8], value: ValueRef<'a>, out: &mut Vec<u8>) -> Result<()> {
        let before = out.len();
        match value {
            ValueRef::Document(doc) => {
                let start = begin_nested(out, Type::Document, name);
                if self.document(doc, out)? {
                    end_nested(out, start);
                } else {
                    out.truncate(before);
                }
            }
            ValueRef::Array(array) => {
                let start = begin_nested(out, Type::Array, name);
                self.elements(array, out)?;
                end_nested(out, start);
            }
            _ => {
                // The value as it stands, under the name it gets.
                let value_at = 1 + raw.iter().skip(1).position(|b| *b == 0).map_or(0, |len| len + 1);
                out.push(value.ty() as u8);
                out.extend_from_slice(name);
                out.push(0);
                out.extend_from_slice(&raw[value_at..]);
            }
        }
        Ok(())
    }

    fn elements(&self, array: RawArray<'a>, out: &mut Vec<u8>) -> Result<()> {
        let mut index = IndexName::new();
        let mut count = 0;
        for elem in array.elems() {
            let before = out.len();
            self.value(index.of(count).as_bytes(), elem.raw(), elem.value(), out)?;
            count += usize::from(out.len() > before);
        }
        Ok(())
    }
}
