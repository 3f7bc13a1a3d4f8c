//! Where the results of a pipeline are written to: what `$out` and `$merge` say, for whoever can write. The stages
//! themselves let documents pass.

use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, Value, ValueRef};

use crate::context::Context;
use crate::expression::{Env, Expression};
use crate::update::Update;

#[derive(Debug)]
pub enum Output {
    /// The results become the collection.
    Replace(Target),
    Merge(Merge),
}

/// The collection that is written to.
#[derive(Clone, Debug)]
pub struct Target {
    /// `None`: the command's own.
    pub db: Option<Box<str>>,
    pub collection: Box<str>,
}

#[derive(Debug)]
pub struct Merge {
    pub into: Target,
    /// The fields that identify a document; `None`: `_id`, because nothing else was said.
    pub on: Option<Vec<Path>>,
    pub when_matched: WhenMatched,
    pub when_not_matched: WhenNotMatched,
}

#[derive(Debug)]
pub enum WhenMatched {
    Replace,
    KeepExisting,
    Merge,
    Fail,
    Pipeline(MergePipeline),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenNotMatched {
    Insert,
    Discard,
    Fail,
}

/// An update of the document that is there, which can see the new one.
#[derive(Debug)]
pub struct MergePipeline {
    pub update: Arc<Update>,
    pub(super) lets: Vec<(Box<str>, Expression)>,
}

impl MergePipeline {
    /// The context for the update by one new document.
    pub fn context(&self, new: RawDoc<'_>, context: &Context) -> Result<Context> {
        let env = Env::new(new, context);
        let mut lets = Vec::with_capacity(self.lets.len());
        for (name, value) in &self.lets {
            lets.push((name.clone(), value.eval(&env)?.into_owned()));
        }
        Ok(context.with_lets(lets))
    }
}

impl Merge {
    /// The filter that finds the document which a new one is to be merged with.
    pub fn filter(&self, new: RawDoc<'_>) -> Result<DocBuf> {
        let mut filter = DocBuf::new();
        match &self.on {
            None => add(&mut filter, &Path::new("_id"), new)?,
            Some(paths) => paths.iter().try_for_each(|path| add(&mut filter, path, new))?,
        }
        Ok(filter)
    }

    /// Whether `_id` is among the fields that identify a document.
    pub fn is_by_id(&self) -> bool {
        self.on.as_ref().is_none_or(|paths| paths.iter().any(|path| path.as_str() == "_id"))
    }
}

fn add(filter: &mut DocBuf, path: &Path, new: RawDoc<'_>) -> Result<()> {
    let value = at(new, path);
    let refuse =
        |code, what: &str| Err(Error::new(Code(code), format!("$merge write error: 'on' field '{path}' {what}")));
    match value.as_ref() {
        Some(ValueRef::Array(_)) => refuse(51185, "is an array"),
        Some(value) if !value.is_nullish() => {
            filter.append_doc(path.as_str(), |condition| {
                condition.append("$eq", value);
            });
            Ok(())
        }
        _ => refuse(51132, "cannot be missing, null, undefined or an array"),
    }
}

/// The value at a path through documents only.
fn at<'a>(doc: RawDoc<'a>, path: &Path) -> Value<'a> {
    let mut value = ValueRef::Document(doc);
    for part in path.parts() {
        match value.as_doc().and_then(|doc| doc.get(part.name())) {
            Some(inner) => value = inner,
            None => return Value::Missing,
        }
    }
    Value::Ref(value)
}
