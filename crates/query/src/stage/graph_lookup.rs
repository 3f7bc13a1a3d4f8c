//! `$graphLookup` adds the documents that can be reached from a document by following references, however many steps
//! away, each once.

use std::collections::HashSet;
use std::sync::Arc;

use espalier_value::number::Number;
use espalier_value::{ArrayBuf, Code, Collator, DocBuf, Error, Path, RawDoc, Result, Value, ValueRef};
use smallvec::SmallVec;

use super::matches::{Matches, collect};
use super::origin::{Ahead, Origin, first};
use super::sub_pipeline::SubPipeline;
use super::unwind::replace;
use super::{Definition, Parse, Parser, Run, Stage, Stages, one};
use crate::expression::{Deps, Env, Expression, field_path};
use crate::filter::Filter;
use crate::stream::Stream;

pub(super) static GRAPH_LOOKUP: Definition =
    Definition { name: "$graphLookup", parse: Parse::Stage(parse), doc: "Follows references through a collection." };

#[derive(Debug)]
struct GraphLookup {
    /// The collection, with `restrictSearchWithMatch` on it.
    other: SubPipeline,
    start_with: Expression,
    from_path: Path,
    to_path: Path,
    as_path: Path,
    depth_max: Option<u64>,
    depth_path: Option<Path>,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let refuse = |code, message: String| Err(Error::new(Code(code), message));
    let ValueRef::Document(spec) = argument else {
        let found = argument.ty().name();
        let message = format!("the $graphLookup stage specification must be an object, but found {found}");
        return Err(Error::failed_to_parse(message));
    };
    let from = match spec.get("from") {
        Some(ValueRef::String("")) => {
            return Err(Error::new(Code::InvalidNamespace, "invalid $graphLookup namespace: it has no name"));
        }
        Some(ValueRef::String(from)) => from,
        Some(other) => {
            let found = other.ty().name();
            return Err(Error::failed_to_parse(format!(
                "$graphLookup 'from' field must be a string, but found {found}"
            )));
        }
        None => {
            let message = format!("missing 'from' option to $graphLookup stage specification: {spec}");
            return Err(Error::failed_to_parse(message));
        }
    };
    let (mut start_with, mut depth_max, mut restrict) = (None, None, RawDoc::EMPTY);
    let (mut from_path, mut to_path, mut as_path, mut depth_path) = (None, None, None, None);
    for elem in spec {
        let (name, value) = (elem.name(), elem.value());
        let slot = match name {
            "from" => continue,
            "startWith" => {
                // Evaluated early only when it is run.
                start_with = Some(Expression::parse(value, &parser.scope.apart())?);
                continue;
            }
            "maxDepth" => {
                depth_max = Some(parse_depth(value)?);
                continue;
            }
            "restrictSearchWithMatch" => {
                let ValueRef::Document(filter) = value else {
                    let found = value.ty().name();
                    return refuse(40185, format!("restrictSearchWithMatch must be an object, found {found}"));
                };
                Filter::parse(filter, parser.scope).map_err(|error| {
                    error.context("Failed to parse 'restrictSearchWithMatch' option to $graphLookup")
                })?;
                restrict = filter;
                continue;
            }
            "connectFromField" => &mut from_path,
            "connectToField" => &mut to_path,
            "as" => &mut as_path,
            "depthField" => &mut depth_path,
            _ => return refuse(40104, format!("Unknown argument to $graphLookup: {name}")),
        };
        let ValueRef::String(text) = value else {
            let found = value.ty().name();
            return refuse(40103, format!("expected string as argument for {name}, found: {found}"));
        };
        *slot = Some(field_path::parse(text)?);
    }
    let (Some(start_with), Some(from_path), Some(to_path), Some(as_path)) = (start_with, from_path, to_path, as_path)
    else {
        let what = "'from', 'as', 'startWith', 'connectFromField', and 'connectToField'";
        return refuse(40105, format!("$graphLookup requires {what} to be specified."));
    };
    // Null leads to null, not to documents without the field.
    let mut exists = DocBuf::new();
    exists.append_doc(to_path.as_str(), |condition| {
        condition.append("$exists", true);
    });
    let both = [restrict, exists.as_raw()].into_iter().map(ValueRef::Document).collect::<ArrayBuf>();
    let mut stages = ArrayBuf::new();
    stages.push_doc(|stage| {
        stage.append_doc("$match", |filter| {
            filter.append("$and", &both);
        });
    });
    let other = SubPipeline::parse(Some(from), stages.as_raw(), parser.scope.clone(), parser, "$graphLookup")?;
    one(GraphLookup { other, start_with, from_path, to_path, as_path, depth_max, depth_path })
}

fn parse_depth(value: ValueRef<'_>) -> Result<u64> {
    let Some(number) = Number::of(value) else {
        let found = value.ty().name();
        return Err(Error::new(Code(40100), format!("maxDepth must be numeric, found type: {found}")));
    };
    if number.compare(Number::Int32(0)).is_lt() {
        let message = format!("maxDepth requires a nonnegative argument, found: {value}");
        return Err(Error::new(Code(40101), message));
    }
    number
        .as_exact_i64()
        .and_then(|depth| u64::try_from(depth).ok())
        .ok_or_else(|| Error::new(Code(40102), format!("maxDepth could not be represented as a long long: {value}")))
}

impl Stage for GraphLookup {
    fn name(&self) -> &'static str {
        GRAPH_LOOKUP.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Following { stage: self, input, run: run.clone(), matches: None, current: DocBuf::new() }))
    }

    fn ahead(&self) -> Ahead {
        Ahead::Each
    }

    fn origin(&self, path: &str) -> Origin {
        if first(path) == self.as_path.first() { Origin::Made } else { Origin::Same }
    }

    fn needs(&self, after: &Deps) -> Deps {
        let mut needs = after.clone();
        needs.merge(&self.start_with.dependencies());
        needs
    }
}

struct Following {
    stage: Arc<GraphLookup>,
    input: Box<dyn Stream>,
    run: Run,
    matches: Option<Matches>,
    current: DocBuf,
}

/// Values to follow that have not been followed, each once.
#[derive(Default)]
struct Frontier {
    seen: HashSet<Vec<u8>>,
    values: Vec<Value<'static>>,
    bytes: usize,
}

impl Frontier {
    fn add(&mut self, value: ValueRef<'_>, collator: Collator<'_>) {
        let key = collator.key(value);
        if !self.seen.contains(&key) {
            let value = Value::own(value);
            self.bytes += key.len() + value.heap_bytes() + size_of::<Value<'static>>();
            self.seen.insert(key);
            self.values.push(value);
        }
    }
}

impl Following {
    fn follow(&mut self) -> Result<ArrayBuf> {
        let stage = self.stage.clone();
        let matches = match &mut self.matches {
            Some(matches) => matches,
            none => none.insert(Matches::new(stage.other.prepare(&self.run)?, stage.to_path.clone(), &self.run)?),
        };
        let context = self.run.context.clone();
        let collator = context.collator();
        let mut frontier = Frontier::default();
        let start = stage.start_with.eval(&Env::new(self.input.doc(), &self.run.context))?;
        match start.as_ref() {
            // Values of an array are starting points each; what is missing starts nowhere.
            Some(ValueRef::Array(array)) => array.iter().for_each(|value| frontier.add(value, collator)),
            Some(value) => frontier.add(value, collator),
            None => {}
        }
        let mut visited: HashSet<Vec<u8>> = HashSet::new();
        let (mut results, mut visited_bytes, mut scratch) = (ArrayBuf::new(), 0, DocBuf::new());
        let mut depth = 0u64;
        while !frontier.values.is_empty() && stage.depth_max.is_none_or(|max| depth <= max) {
            let values = std::mem::take(&mut frontier.values);
            let refs: Vec<ValueRef<'_>> = values.iter().map(Value::or_null).collect();
            let mut found = matches.open(&refs, &self.run)?;
            while found.advance()? {
                self.run.context.interrupt.check()?;
                let doc = found.doc();
                let id = collator.key(doc.get("_id").unwrap_or(ValueRef::Undefined));
                visited_bytes += id.len();
                if !visited.insert(id) {
                    continue;
                }
                // The depth may stand where the next step would be: then there is none.
                let doc = match &stage.depth_path {
                    Some(path) => {
                        replace(doc, path.parts(), Some(ValueRef::Int64(depth as i64)), &mut scratch);
                        scratch.as_raw()
                    }
                    None => doc,
                };
                let mut next: SmallVec<[ValueRef<'_>; 4]> = SmallVec::new();
                collect(ValueRef::Document(doc), stage.from_path.parts(), &mut next);
                next.into_iter().for_each(|value| frontier.add(value, collator));
                results.push(doc);
                let used = results.len_bytes() + visited_bytes + frontier.bytes;
                if used > self.run.limits.stage_memory_bytes_max {
                    return Err(Error::new(Code(40099), "$graphLookup reached maximum memory consumption"));
                }
            }
            depth += 1;
        }
        Ok(results)
    }
}

impl Stream for Following {
    fn advance(&mut self) -> Result<bool> {
        if !self.input.advance()? {
            return Ok(false);
        }
        let results = self.follow()?;
        let path = self.stage.as_path.parts();
        replace(self.input.doc(), path, Some(ValueRef::Array(results.as_raw())), &mut self.current);
        Ok(true)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.current.as_raw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_followed_once() {
        let mut frontier = Frontier::default();
        [ValueRef::Int32(1), ValueRef::Double(1.0), ValueRef::String("a")]
            .into_iter()
            .for_each(|v| frontier.add(v, Collator::SIMPLE));
        assert_eq!(frontier.values.len(), 2);
        frontier.values.clear();
        frontier.add(ValueRef::Int64(1), Collator::SIMPLE);
        assert!(frontier.values.is_empty());
    }
}
