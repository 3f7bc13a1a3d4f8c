//! `aggregate`: documents through a pipeline. What the store can do of it (the leading `$match`, `$sort`, `$skip`,
//! `$limit`) it does; the stages do the rest.

use std::sync::Arc;
use std::time::Duration;

use espalier_query::Context;
use espalier_query::expression::Scope;
use espalier_query::stage::Pipeline;
use espalier_query::stage::output::Output;
use espalier_query::stream::Buffered;
use espalier_store::{CommitToken, Hint, Namespace, Tailable, Transaction, Verbosity};
use espalier_value::number::Number;
use espalier_value::{ArrayBuf, DocBuf, RawArray};

use super::asked::asks_for;
use super::prelude::*;
use super::{explain, server_stage};
use crate::auth::may_run_pipeline;
use crate::change_streams::{self, Opening};
use crate::cursors::{First, OpenCursor, Source, write_first};
use crate::fields::{self, Field};
use crate::output::{self, Writing};
use crate::parse;
use crate::pipeline::{self, How};
use crate::views;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "aggregate",
    doc: "Runs documents through a pipeline.",
    privilege: Privilege::Asked {
        doc: "`find` on the collection and every other it reads; `insert`, `update`, `remove` as `$out` and `$merge` need",
        may,
    },
    stable: true,
    reads: true,
    writes: true,
    run: aggregate,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let collection = match request.argument {
        ValueRef::String(name) => Some(name),
        _ => None,
    };
    let stages = request.body.get("pipeline").and_then(ValueRef::as_array);
    let bypass = asks_for(request, "bypassDocumentValidation");
    let stages = stages.unwrap_or(RawArray::of(RawDoc::EMPTY));
    may_run_pipeline(request.db, collection, stages, bypass, rights)
}

/// A parsed `aggregate`.
pub(super) struct Parsed<'a> {
    pub ns: Namespace,
    /// `{aggregate: 1}`: no collection, the pipeline makes its documents.
    whole_database: bool,
    stages: RawArray<'a>,
    context: Arc<Context>,
    scope: Scope,
    hint: Option<Hint>,
    batch_size: Option<u64>,
    allow_disk_use: bool,
    explain: bool,
    bypass_validation: bool,
}

fn aggregate(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let parsed = parse(request, call, false)?;
    call.server.metrics.queries.add(1);
    if let Some(spec) = change_streams::of(parsed.stages)
        && call.transaction.is_none()
    {
        return watch(request, call, parsed, spec);
    }
    if parsed.explain {
        return explain::aggregate(request, call, &parsed, Verbosity::QueryPlanner);
    }
    if call.transaction.is_some() {
        check_in_transaction(&parsed)?;
    }
    let (mut source, pipeline) = open(&parsed, call)?;
    if let Some(output) = pipeline.output() {
        if request.generic.read_concern.and_then(|concern| concern.get_str("level")) == Some("linearizable") {
            let message = "$out and $merge cannot be used with a 'linearizable' read concern level";
            return Err(Error::new(Code::InvalidOptions, message));
        }
        let concern = WriteConcern::of(request)?;
        let commit = write_output(output, &mut source, &parsed, call)?;
        source = Source::Pipeline(Box::new(Buffered::new(Vec::new())));
        concern.fulfil(call, commit)?;
    }
    let mut cursor = Box::new(OpenCursor::new(parsed.ns, Arc::clone(&parsed.context), source));
    cursor.session = call.lsid;
    let name = cursor.ns.to_string();
    write_first(call, cursor, &name, First { batch_size: parsed.batch_size, ..First::default() })
}

/// Stages that look beyond the transaction's snapshot, or write.
fn check_in_transaction(parsed: &Parsed<'_>) -> Result<()> {
    let stages = parsed.stages.iter().filter_map(ValueRef::as_doc).filter_map(RawDoc::first);
    for stage in stages.map(|elem| elem.name()) {
        let message = match stage {
            "$out" | "$merge" => format!("{stage} cannot be used in a transaction"),
            _ if stage == change_streams::STAGE || server_stage::find(stage).is_some() => {
                format!("Stage not supported inside of a multi-document transaction: {stage}")
            }
            _ => continue,
        };
        return Err(Error::new(Code::OperationNotSupportedInTransaction, message));
    }
    Ok(())
}

/// How long a new change stream looks through the history before it replies; `getMore` goes on from there.
const FIRST_LOOK: Duration = Duration::from_secs(1);

fn watch(request: &Request<'_>, call: &mut Call<'_>, parsed: Parsed<'_>, spec: ValueRef<'_>) -> Result<()> {
    change_streams::check_read_concern(request.generic.read_concern)?;
    let opening = Opening {
        ns: &parsed.ns,
        whole_database: parsed.whole_database,
        raw: request.generic.raw_data,
        stages: parsed.stages,
        scope: &parsed.scope,
        context: &parsed.context,
    };
    let mut stream = change_streams::open(call.server, spec, &opening)?;
    if !parsed.whole_database && call.begin(&parsed.context)?.view(&parsed.ns)?.is_some() {
        let message = format!("Namespace {} is a view, not a collection", parsed.ns);
        return Err(Error::new(Code::CommandNotSupportedOnView, message));
    }
    if parsed.explain {
        return Err(Error::new(Code::CommandNotSupported, "explain of a $changeStream is not supported yet"));
    }
    stream.look_until(call.started + FIRST_LOOK);
    let mut cursor =
        Box::new(OpenCursor::new(parsed.ns, Arc::clone(&parsed.context), Source::Changes(Box::new(stream))));
    cursor.session = call.lsid;
    cursor.tailable = Some(Tailable::Await);
    let name = cursor.ns.to_string();
    write_first(call, cursor, &name, First { batch_size: parsed.batch_size, ..First::default() })
}

fn write_output(output: &Output, source: &mut Source, parsed: &Parsed<'_>, call: &Call<'_>) -> Result<CommitToken> {
    let ns = output::check(output, parsed.ns.db(), &parsed.context, &*call.begin(&parsed.context)?)?;
    let writing = Writing { context: &parsed.context, bypass_validation: parsed.bypass_validation };
    output::write(output, &ns, source, &writing, call)
}

/// Reads all fields. Inside `explain` the cursor may be missing.
pub(super) fn parse<'a>(request: &Request<'a>, call: &Call<'_>, inside_explain: bool) -> Result<Parsed<'a>> {
    let (mut stages, mut cursor, mut explain, mut hint, mut lets) = (None, None, false, None, None);
    let (mut allow_disk_use, mut bypass_validation, mut collation) = (true, false, None);
    for field in request.fields("aggregate") {
        match field.name() {
            "pipeline" => match field.value() {
                ValueRef::Array(array) => stages = Some(array),
                _ => return Err(Error::type_mismatch("'pipeline' option must be specified as an array")),
            },
            "cursor" => cursor = Some(parse_cursor(&field)?),
            "explain" => explain = flag(&field)?,
            "allowDiskUse" => allow_disk_use = flag(&field)?,
            "bypassDocumentValidation" => bypass_validation = field.bool_or_number()?.unwrap_or(false),
            "hint" => hint = parse::hint(field.value())?,
            "collation" => collation = parse::collation(&field)?,
            "let" => lets = field.doc()?,
            "needsMerge" | "fromMongos" | "isMapReduceCommand" | "requestReshardingResumeToken" => {
                flag(&field)?;
            }
            _ => return Err(field.unknown()),
        }
    }
    let (ns, whole_database) = target(request)?;
    let stages = stages.ok_or_else(|| fields::missing("aggregate", "pipeline"))?;
    if cursor.is_none() && !explain && !inside_explain {
        let message = "The 'cursor' option is required, except for aggregate with the explain argument";
        return Err(Error::failed_to_parse(message));
    }
    check_length(stages, call.server.options.limits.pipeline_stages_max)?;
    let mut context = call.context_on(&ns, collation)?;
    let scope = parse::lets(lets, &mut context).map_err(|error| error.context("Invalid 'let' parameter"))?;
    let batch_size = cursor.flatten();
    let context = Arc::new(context);
    Ok(Parsed {
        ns,
        whole_database,
        stages,
        context,
        scope,
        hint,
        batch_size,
        allow_disk_use,
        explain,
        bypass_validation,
    })
}

/// No pipeline may be too long, nor one inside a stage (`$facet`, `$lookup`, `$unionWith`).
fn check_length(stages: RawArray<'_>, max: u64) -> Result<()> {
    if stages.len() as u64 > max {
        let message = format!("Pipeline length must be no longer than {max} stages");
        return Err(Error::new(Code(7_749_501), message));
    }
    for stage in stages.iter().filter_map(ValueRef::as_doc).filter_map(RawDoc::first) {
        let ValueRef::Document(argument) = stage.value() else { continue };
        for inner in argument {
            let holds_pipeline = stage.name() == "$facet" || inner.name() == "pipeline";
            if let (true, ValueRef::Array(pipeline)) = (holds_pipeline, inner.value()) {
                check_length(pipeline, max)?;
            }
        }
    }
    Ok(())
}

/// The stages that need no collection, and stand first.
const WITHOUT_COLLECTION: &[&str] = &["$changeStream", "$currentOp", "$documents", "$listLocalSessions"];

/// Whether the first stage and the target of the command go together.
fn check_target(parsed: &Parsed<'_>) -> Result<()> {
    let first = parsed.stages.get(0).and_then(ValueRef::as_doc).and_then(RawDoc::first).map(|elem| elem.name());
    let message = match first {
        None if parsed.whole_database && parsed.stages.is_empty() => {
            "{aggregate: 1} is not valid for an empty pipeline.".to_string()
        }
        Some(first) if parsed.whole_database && !WITHOUT_COLLECTION.contains(&first) => {
            if espalier_query::stage::registry().all(|entry| entry.name != first) {
                return Ok(());
            }
            format!("{{aggregate: 1}} is not valid for '{first}'; a collection is required.")
        }
        Some("$documents") if !parsed.whole_database => "'$documents' can only be run with {aggregate: 1}".to_string(),
        _ => return Ok(()),
    };
    Err(Error::new(Code::InvalidNamespace, message))
}

/// What a pipeline runs on.
pub(super) enum Plan {
    /// The first stage is one of the server's own; these are its documents.
    Server(Vec<DocBuf>, Pipeline),
    /// The first stage makes documents itself.
    Made(Pipeline),
    /// A collection: the one that was named, or the one below a view.
    Find(Namespace, Pipeline),
}

pub(super) fn plan(parsed: &Parsed<'_>, transaction: &dyn Transaction, call: &Call<'_>) -> Result<Plan> {
    check_target(parsed)?;
    let first = parsed.stages.get(0).and_then(ValueRef::as_doc).and_then(RawDoc::first);
    if let Some(first) = first
        && let Some(make) = server_stage::find(first.name())
    {
        let rest: ArrayBuf = parsed.stages.iter().skip(1).collect();
        let pipeline = Pipeline::parse(rest.as_raw(), &parsed.scope, &parsed.context)?;
        let docs = make(first.value(), &parsed.ns, parsed.whole_database, call)?;
        return Ok(Plan::Server(docs, pipeline));
    }
    if parsed
        .stages
        .iter()
        .skip(1)
        .filter_map(ValueRef::as_doc)
        .filter_map(RawDoc::first)
        .any(|elem| elem.name() == change_streams::STAGE)
    {
        return Err(change_streams::not_first());
    }
    let later = parsed.stages.iter().skip(1).filter_map(ValueRef::as_doc).filter_map(RawDoc::first);
    if let Some(misplaced) = later.map(|elem| elem.name()).find(|name| server_stage::find(name).is_some()) {
        if matches!(misplaced, "$currentOp" | "$listLocalSessions") && !parsed.whole_database {
            let message = format!("{misplaced} must be run with {{aggregate: 1}}, not on a collection");
            return Err(Error::new(Code::InvalidNamespace, message));
        }
        let message = format!("{misplaced} is only valid as the first stage in a pipeline");
        return Err(Error::new(Code(40602), message));
    }
    let pipeline = Pipeline::parse(parsed.stages, &parsed.scope, &parsed.context)?;
    if pipeline.is_source() {
        if let Some(first) = first
            && !parsed.whole_database
        {
            let message = format!("'{}' can only be run with {{aggregate: 1}}", first.name());
            return Err(Error::new(Code::InvalidNamespace, message));
        }
        return Ok(Plan::Made(pipeline));
    }
    let Some(view) = views::resolve(transaction, &parsed.ns)? else {
        return Ok(Plan::Find(parsed.ns.clone(), pipeline));
    };
    let stages = views::with(&view, parsed.stages);
    let pipeline = Pipeline::parse(stages.as_raw(), &parsed.scope, &parsed.context)?;
    Ok(if pipeline.is_source() { Plan::Made(pipeline) } else { Plan::Find(view.below, pipeline) })
}

impl Parsed<'_> {
    pub fn how(&self) -> How<'_> {
        How { context: &self.context, hint: self.hint.as_ref(), allow_disk_use: self.allow_disk_use }
    }
}

fn open(parsed: &Parsed<'_>, call: &Call<'_>) -> Result<(Source, Pipeline)> {
    let transaction = call.begin(&parsed.context)?;
    let (how, db) = (parsed.how(), parsed.ns.db());
    Ok(match plan(parsed, &*transaction, call)? {
        Plan::Server(docs, pipeline) => (pipeline::on(&pipeline, docs, db, &how, transaction, call)?, pipeline),
        Plan::Made(pipeline) => (pipeline::on(&pipeline, Vec::new(), db, &how, transaction, call)?, pipeline),
        Plan::Find(ns, pipeline) => (pipeline::open(&pipeline, &ns, &how, transaction, call)?, pipeline),
    })
}

fn target(request: &Request<'_>) -> Result<(Namespace, bool)> {
    match request.argument {
        ValueRef::String(_) => Ok((request.namespace()?, false)),
        value if Number::of(value).is_some_and(|n| n.as_exact_i64() == Some(1)) => {
            Ok((Namespace::new(request.db, "$cmd.aggregate"), true))
        }
        _ => {
            let message = "Invalid command format: the 'aggregate' field must specify a collection name or 1";
            Err(Error::failed_to_parse(message))
        }
    }
}

fn parse_cursor(field: &Field<'_, '_>) -> Result<Option<u64>> {
    let ValueRef::Document(doc) = field.value() else {
        return Err(Error::type_mismatch("cursor field must be missing or an object"));
    };
    let mut size = None;
    for field in fields::fields(doc, "cursor")? {
        match field.name() {
            "batchSize" => size = field.count()?,
            _ => return Err(field.unknown()),
        }
    }
    Ok(size)
}

fn flag(field: &Field<'_, '_>) -> Result<bool> {
    match field.value() {
        ValueRef::Bool(value) => Ok(value),
        other => Err(Error::type_mismatch(format!(
            "Field '{}' should be a boolean value, but found: {}",
            field.name(),
            other.ty().name()
        ))),
    }
}
