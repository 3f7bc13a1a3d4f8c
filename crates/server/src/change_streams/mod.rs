//! Change streams: `$changeStream` as the first stage of a pipeline, on a collection, a database or everything.

mod event;
mod options;
mod stream;
mod token;

use std::sync::Arc;

use espalier_query::Context;
use espalier_query::expression::Scope;
use espalier_query::stage::Pipeline;
use espalier_store::Namespace;
use espalier_value::{ArrayBuf, Code, Error, RawArray, RawDoc, Result, ValueRef};

use crate::server::Server;

pub use options::{Options, check_read_concern};
pub use stream::ChangeStream;
pub use token::Token;

/// The name of the stage.
pub const STAGE: &str = "$changeStream";

/// The stages that may follow. Sorted.
const ALLOWED: [&str; 8] =
    ["$addFields", "$match", "$project", "$redact", "$replaceRoot", "$replaceWith", "$set", "$unset"];

/// The argument of `$changeStream`, if the pipeline begins with it.
pub fn of(stages: RawArray<'_>) -> Option<ValueRef<'_>> {
    let first = stages.get(0).and_then(ValueRef::as_doc).and_then(RawDoc::first)?;
    (first.name() == STAGE).then(|| first.value())
}

/// What a command says about the stream it opens.
pub struct Opening<'a> {
    pub ns: &'a Namespace,
    pub whole_database: bool,
    pub raw: bool,
    pub stages: RawArray<'a>,
    pub scope: &'a Scope,
    pub context: &'a Arc<Context>,
}

pub fn open(server: &Server, spec: ValueRef<'_>, opening: &Opening<'_>) -> Result<ChangeStream> {
    let options = Options::parse(spec, opening.ns, opening.whole_database)?;
    let rest: ArrayBuf = opening.stages.iter().skip(1).collect();
    let pipeline = match rest.is_empty() {
        true => None,
        false => Some(parse_stages(rest.as_raw(), opening)?),
    };
    ChangeStream::open(options, pipeline, opening.raw, Arc::clone(&server.store), Arc::clone(opening.context))
}

/// What is wrong with a stage itself comes before that it may not be here.
fn parse_stages(stages: RawArray<'_>, opening: &Opening<'_>) -> Result<Pipeline> {
    let names = || stages.iter().filter_map(ValueRef::as_doc).filter_map(RawDoc::first).map(|elem| elem.name());
    if names().any(|name| name == STAGE) {
        return Err(not_first());
    }
    let parsed = Pipeline::parse(stages, opening.scope, opening.context);
    // Stages that only the server knows are no mistake of their own.
    let refused = names().find(|name| ALLOWED.binary_search(name).is_err());
    match (parsed, refused) {
        (Ok(pipeline), None) => Ok(pipeline),
        (Ok(_), Some(name)) => Err(not_permitted(name)),
        (Err(error), Some(name)) if error.code() == Code::CommandNotSupported => Err(match name {
            "$currentOp" | "$listLocalSessions" | "$listSessions" => {
                Error::new(Code::InvalidNamespace, format!("{name} must be the first stage, on another namespace"))
            }
            _ => not_permitted(name),
        }),
        (Err(error), _) => Err(error),
    }
}

fn not_permitted(stage: &str) -> Error {
    Error::new(Code::IllegalOperation, format!("{stage} is not permitted in a $changeStream pipeline"))
}

/// `$changeStream` somewhere else than at the beginning.
pub fn not_first() -> Error {
    Error::new(Code(40602), "$changeStream is only valid as the first stage in a pipeline")
}
