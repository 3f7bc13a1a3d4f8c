//! `explain`: how the store would carry out a command, in MongoDB's shape.

use espalier_query::expression::Scope;
use espalier_query::stage::Pipeline;
use espalier_query::update::Apply;
use espalier_store::{Find, Namespace, Transaction, Update, Verbosity};
use espalier_value::{ArrayBuf, DocBuf};

use super::aggregate::{Parsed, Plan};
use super::build_info::MONGODB_VERSION;
use super::find_and_modify::Write;
use super::prelude::*;
use super::{count, delete, distinct, explain_run, explain_stage, find, find_and_modify, update};
use crate::pipeline::{self, How};
use crate::reply::build;
use crate::views;

pub(super) static COMMAND: Command = Command {
    name: "explain",
    doc: "Shows how a command is carried out.",
    privilege: Privilege::Asked { doc: "what the explained command needs", may },
    stable: true,
    run: explain,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let ValueRef::Document(body) = request.argument else { return rights.is_authenticated() };
    let command = body.first().and_then(|elem| super::find(elem.name()));
    match (command, request.inner(body)) {
        (Some((_, command)), Ok(inner)) => crate::auth::is_allowed(command, &inner, rights),
        // What it is will be refused for another reason.
        _ => rights.is_authenticated(),
    }
}

fn explain(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut verbosity = Verbosity::AllPlansExecution;
    for field in request.fields("explain") {
        match field.name() {
            "verbosity" => {
                verbosity = match field.str()? {
                    Some("queryPlanner") => Verbosity::QueryPlanner,
                    Some("executionStats") => Verbosity::ExecutionStats,
                    Some("allPlansExecution") | None => Verbosity::AllPlansExecution,
                    Some(other) => {
                        let path = field.path();
                        let message = format!("Enumeration value '{other}' for field '{path}' is not a valid value.");
                        return Err(Error::bad_value(message));
                    }
                }
            }
            _ => return Err(field.unknown()),
        }
    }
    let ValueRef::Document(body) = request.argument else {
        let found = request.argument.ty().name();
        let message = format!("BSON field 'explain.explain' is the wrong type '{found}', expected type 'object'");
        return Err(Error::type_mismatch(message));
    };
    let unknown =
        |name: &str| Error::new(Code::CommandNotFound, format!("Explain failed due to unknown command: {name}"));
    let name = body.first().map(|elem| elem.name()).unwrap_or_default();
    let command = super::find(name).map(|(_, command)| command.name).ok_or_else(|| unknown(name))?;
    let inner = request.inner(body)?;
    match command {
        "find" => {
            let parsed = find::parse(&inner, call)?;
            let context = &parsed.find.context;
            let transaction = call.begin(context)?;
            if let Some(view) = views::resolve(&*transaction, &parsed.ns)? {
                let stages = views::find_stages(&view, inner.body)?;
                let pipeline = Pipeline::parse(stages.as_raw(), &Scope::of(context), context)?;
                let hint = parsed.find.hint.as_ref();
                let how = How { context, hint, allow_disk_use: parsed.find.allow_disk_use };
                return explain_view(call, &*transaction, &view.below, &pipeline, &how, verbosity);
            }
            let doc = store_explain(call, &parsed.ns, &parsed.find, verbosity)?;
            write(call, &inner, doc.as_raw())
        }
        "count" => {
            let (ns, find) = count::parse(&inner, call)?;
            let transaction = call.begin(&find.context)?;
            if let Some(view) = views::resolve(&*transaction, &ns)? {
                let pipeline = count::count_pipeline(&view, &inner, &find)?;
                let how = How { context: &find.context, hint: find.hint.as_ref(), allow_disk_use: true };
                return explain_view(call, &*transaction, &view.below, &pipeline, &how, verbosity);
            }
            // What is skipped is read all the same.
            let limit = find.limit.map(|limit| limit.saturating_add(find.skip));
            let read = Find { needs: Some(Vec::new()), skip: 0, limit, ..find.clone() };
            let doc = store_explain(call, &ns, &read, verbosity)?;
            let found = returned(doc.as_raw());
            let skipped = found.min(find.skip.min(i64::MAX as u64) as i64);
            let extra = build(|extra| {
                extra.append_count("nCounted", (found - skipped) as u64).append_count("nSkipped", skipped as u64);
            });
            let doc = match winning_stage(doc.as_raw()) {
                // Without conditions the count is known, and nothing is read.
                Some(known @ "RECORD_STORE_FAST_COUNT") => wrap(doc.as_raw(), known, extra.as_raw(), 0, false),
                _ => wrap(doc.as_raw(), "COUNT", extra.as_raw(), 0, true),
            };
            write(call, &inner, doc.as_raw())
        }
        "distinct" => {
            let (ns, key, find) = distinct::parse(&inner, call)?;
            let transaction = call.begin(&find.context)?;
            if let Some(view) = views::resolve(&*transaction, &ns)? {
                let pipeline = distinct::distinct_pipeline(&view, &inner, key, &find)?;
                let how = How { context: &find.context, hint: None, allow_disk_use: true };
                return explain_view(call, &*transaction, &view.below, &pipeline, &how, verbosity);
            }
            let doc = store_explain(call, &ns, &find.distinct_at(key), verbosity)?;
            write(call, &inner, doc.as_raw())
        }
        "aggregate" => {
            let parsed = super::aggregate::parse(&inner, call, true)?;
            aggregate(&inner, call, &parsed, verbosity)
        }
        "update" => {
            let ns = inner.namespace()?;
            let parsed = update::parse(&inner, call)?;
            let [entry] = &parsed.entries[..] else { return Err(one_write_only()) };
            let (scope, context) = parsed.context(&ns, call)?;
            let update = entry.prepare(&scope, &context, call.server.ids.object_id().0, false)?;
            let doc = explain_update(call, &ns, &update, verbosity, false)?;
            write(call, &inner, doc.as_raw())
        }
        "delete" => {
            let ns = inner.namespace()?;
            let parsed = delete::parse(&inner, call)?;
            let [entry] = &parsed.entries[..] else { return Err(one_write_only()) };
            let (scope, context) = parsed.context(&ns, call)?;
            let delete = entry.prepare(&scope, &context)?;
            let doc = explain_delete(call, &ns, &delete, verbosity, false)?;
            write(call, &inner, doc.as_raw())
        }
        "findAndModify" => {
            let ns = inner.namespace()?;
            let doc = match find_and_modify::parse(&inner, call)?.0 {
                Write::Update(update) => explain_update(call, &ns, &update, verbosity, true)?,
                Write::Remove(delete) => explain_delete(call, &ns, &delete, verbosity, true)?,
            };
            write(call, &inner, doc.as_raw())
        }
        other => Err(Error::new(Code::IllegalOperation, format!("Cannot explain cmd: {other}"))),
    }
}

fn one_write_only() -> Error {
    Error::new(Code::InvalidLength, "explained write batches must be of size 1")
}

fn store_explain(call: &Call<'_>, ns: &Namespace, find: &Find, verbosity: Verbosity) -> Result<DocBuf> {
    call.begin(&find.context)?.explain(ns, find, verbosity)
}

/// Explains an `aggregate`: as the `find` it is, or as stages on a cursor.
pub(super) fn aggregate(
    request: &Request<'_>,
    call: &mut Call<'_>,
    parsed: &Parsed<'_>,
    verbosity: Verbosity,
) -> Result<()> {
    let transaction = call.begin(&parsed.how().context.clone())?;
    let db = parsed.ns.db();
    let doc = match super::aggregate::plan(parsed, &*transaction, call)? {
        Plan::Find(ns, pipeline) => {
            explain_pipeline(call, &*transaction, db, Some(&ns), &pipeline, &parsed.how(), verbosity)?
        }
        // Its documents are there before anything runs, and are gone afterwards.
        Plan::Server(_, pipeline) => {
            explain_pipeline(call, &*transaction, db, None, &pipeline, &parsed.how(), Verbosity::QueryPlanner)?
        }
        Plan::Made(pipeline) => explain_pipeline(call, &*transaction, db, None, &pipeline, &parsed.how(), verbosity)?,
    };
    write(call, request, doc.as_raw())
}

/// A pipeline that is no more than a find is explained as one, any other as stages on a cursor.
fn explain_pipeline(
    call: &Call<'_>,
    transaction: &dyn Transaction,
    db: &str,
    ns: Option<&Namespace>,
    pipeline: &Pipeline,
    how: &How<'_>,
    verbosity: Verbosity,
) -> Result<DocBuf> {
    let ns = ns.filter(|_| !pipeline.is_source());
    let cursor = ns.map(|ns| transaction.explain(ns, &pipeline::find(pipeline, how), verbosity)).transpose()?;
    if let Some(cursor) = &cursor
        && pipeline.rest().is_empty()
    {
        return Ok(cursor.clone());
    }
    let stages = explain_stages(call, transaction, db, ns.zip(cursor.as_ref()), pipeline, how, verbosity)?;
    Ok(build(|doc| {
        doc.append("stages", &stages);
    }))
}

/// What the store does, and then each stage.
fn explain_stages(
    call: &Call<'_>,
    transaction: &dyn Transaction,
    db: &str,
    cursor: Option<(&Namespace, &DocBuf)>,
    pipeline: &Pipeline,
    how: &How<'_>,
    verbosity: Verbosity,
) -> Result<ArrayBuf> {
    let figures = match verbosity {
        Verbosity::QueryPlanner => Vec::new(),
        _ => explain_run::run(pipeline, cursor.map(|(ns, _)| ns), db, how, call)?,
    };
    let mut stages = ArrayBuf::new();
    if let Some((_, cursor)) = cursor {
        stages.push_doc(|stage| {
            stage.append("$cursor", cursor);
            figures.first().into_iter().for_each(|figures| figures.append_to("$cursor", stage));
        });
    }
    let union = |collection: &str, inner: ArrayBuf| -> Result<ArrayBuf> {
        let (ns, inner) = match views::resolve(transaction, &Namespace::new(db, collection))? {
            Some(view) => (view.below.clone(), views::with(&view, inner.as_raw())),
            None => (Namespace::new(db, collection), inner),
        };
        let pipeline = Pipeline::parse(inner.as_raw(), &Scope::of(how.context), how.context)?;
        let how = How { hint: None, ..*how };
        let cursor = match pipeline.is_source() {
            true => None,
            false => Some(transaction.explain(&ns, &pipeline::find(&pipeline, &how), verbosity)?),
        };
        let cursor = cursor.as_ref().map(|cursor| (&ns, cursor));
        explain_stages(call, transaction, db, cursor, &pipeline, &how, verbosity)
    };
    let mut rest = pipeline.rest().iter().zip(pipeline.rest_written()).enumerate().peekable();
    while let Some((at, (stage, written))) = rest.next() {
        let mut last = at;
        let by_distinct_scan = at == 0 && cursor.is_some_and(|(_, plan)| reads_distinct(plan.as_raw()));
        let mut shown = match written.first().filter(|_| by_distinct_scan) {
            Some(written) => explain_stage::group_by_distinct_scan(written.as_raw()),
            None => explain_stage::shown(&**stage, written, db, &union)?,
        };
        // What another stage is short for is shown as one with it, unless it can be written by itself.
        while let Some((at, _)) = rest.next_if(|(_, (stage, written))| written.is_empty() && stage.pushdown().is_none())
        {
            last = at;
        }
        if let Some(figures) = figures.get(last + 1) {
            figures.append_to(stage.name(), &mut shown);
        }
        stages.push(shown.as_raw());
    }
    Ok(stages)
}

/// Whether the store reads one document for each group.
fn reads_distinct(plan: RawDoc<'_>) -> bool {
    let winning = plan.get_doc("queryPlanner").and_then(|planner| planner.get_doc("winningPlan"));
    std::iter::successors(winning, |stage| stage.get_doc("inputStage"))
        .any(|stage| stage.get_str("stage") == Some("DISTINCT_SCAN"))
}

/// What is read of a view is explained as the `aggregate` that it is.
fn explain_view(
    call: &mut Call<'_>,
    transaction: &dyn Transaction,
    below: &Namespace,
    pipeline: &Pipeline,
    how: &How<'_>,
    verbosity: Verbosity,
) -> Result<()> {
    let doc = explain_pipeline(call, transaction, below.db(), Some(below), pipeline, how, verbosity)?;
    let body = build(|body| {
        body.append("aggregate", below.collection()).append("pipeline", pipeline.source());
        body.doc("cursor");
        match &how.context.collation {
            Some(collation) => drop(body.append("collation", &collation.listed())),
            None => drop(body.doc("collation").append("locale", "simple")),
        }
    });
    write_as(call, body.as_raw(), doc.as_raw())
}

fn explain_update(
    call: &Call<'_>,
    ns: &Namespace,
    update: &Update,
    verbosity: Verbosity,
    returns: bool,
) -> Result<DocBuf> {
    let mut find = Find::new(update.filter.clone(), update.context.clone());
    find.sort = update.sort.clone();
    find.hint = update.hint.clone();
    find.limit = (!update.multi).then_some(1);
    let doc = store_explain(call, ns, &find, verbosity)?;
    let (mut matched, mut modified) = (0i64, 0i64);
    if verbosity != Verbosity::QueryPlanner {
        // What it would change is found by doing it, without keeping the result.
        let mut cursor = call.begin(&update.context)?.find(ns, &find)?;
        while cursor.advance()? {
            let current = cursor.doc();
            let position = update.filter.matches_at(current, &update.context)?.and_then(|found| found.position);
            let how = Apply { position, ..Apply::new(&update.context) };
            matched += 1;
            modified += i64::from(update.update.apply(current, &how)?.is_some());
        }
    }
    let upserts = i64::from(update.upsert && matched == 0);
    let extra = build(|extra| {
        extra.append("nMatched", matched).append("nWouldModify", modified).append("nWouldUpsert", upserts);
    });
    Ok(wrap(doc.as_raw(), "UPDATE", extra.as_raw(), if returns { matched } else { 0 }, true))
}

fn explain_delete(
    call: &Call<'_>,
    ns: &Namespace,
    delete: &espalier_store::Delete,
    verbosity: Verbosity,
    returns: bool,
) -> Result<DocBuf> {
    let mut find = Find::new(delete.filter.clone(), delete.context.clone());
    find.sort = delete.sort.clone();
    find.hint = delete.hint.clone();
    find.limit = (!delete.multi).then_some(1);
    let doc = store_explain(call, ns, &find, verbosity)?;
    let deleted = returned(doc.as_raw());
    let extra = build(|extra| {
        extra.append("nWouldDelete", deleted);
    });
    Ok(wrap(doc.as_raw(), "DELETE", extra.as_raw(), if returns { deleted } else { 0 }, true))
}

/// `executionStats.nReturned`.
fn returned(doc: RawDoc<'_>) -> i64 {
    let stats = doc.get_doc("executionStats").and_then(|stats| stats.get("nReturned"));
    stats.and_then(espalier_value::number::Number::of).map_or(0, espalier_value::number::Number::to_i64_clamped)
}

/// The outermost stage of the plan.
fn winning_stage(doc: RawDoc<'_>) -> Option<&str> {
    doc.get_doc("queryPlanner")?.get_doc("winningPlan")?.get_str("stage")
}

/// Puts a stage above the plan of a find, or in its place if it needs no input.
fn wrap(doc: RawDoc<'_>, stage: &str, extra: RawDoc<'_>, returned: i64, with_input: bool) -> DocBuf {
    if winning_stage(doc) == Some("EOF") {
        return DocBuf::from_raw(doc);
    }
    build(|out| {
        for elem in doc {
            match (elem.name(), elem.value()) {
                ("queryPlanner", ValueRef::Document(planner)) => {
                    let mut out = out.doc("queryPlanner");
                    for elem in planner {
                        match (elem.name(), elem.value()) {
                            ("winningPlan", ValueRef::Document(plan)) => {
                                let plan = below_limit(plan);
                                let mut winning = out.doc("winningPlan");
                                winning.append("stage", stage);
                                if with_input {
                                    winning.append("inputStage", plan);
                                }
                            }
                            _ => {
                                out.append_elem(elem);
                            }
                        }
                    }
                }
                ("executionStats", ValueRef::Document(stats)) => {
                    let mut out = out.doc("executionStats");
                    for elem in stats {
                        match (elem.name(), elem.value()) {
                            ("nReturned", _) => {
                                out.append_count("nReturned", returned as u64);
                            }
                            ("totalDocsExamined" | "totalKeysExamined", _) if !with_input => {
                                out.append(elem.name(), 0);
                            }
                            ("executionStages", ValueRef::Document(plan)) => {
                                let plan = below_limit(plan);
                                let mut stages = out.doc("executionStages");
                                stages.append("stage", stage).append_count("nReturned", returned as u64);
                                stages.append("executionTimeMillisEstimate", 0);
                                stages.append_count("advanced", returned as u64).append("isEOF", 1);
                                stages.append_fields(extra);
                                if with_input {
                                    stages.append("inputStage", plan);
                                }
                            }
                            _ => {
                                out.append_elem(elem);
                            }
                        }
                    }
                }
                _ => {
                    out.append_elem(elem);
                }
            }
        }
    })
}

/// A write that takes the first match needs no stage to say so.
fn below_limit(plan: RawDoc<'_>) -> RawDoc<'_> {
    match (plan.get_str("stage"), plan.get_doc("inputStage")) {
        (Some("LIMIT"), Some(input)) => input,
        _ => plan,
    }
}

/// What MongoDB puts around every explanation.
fn write(call: &mut Call<'_>, request: &Request<'_>, doc: RawDoc<'_>) -> Result<()> {
    let command = build(|command| {
        command.append_fields(request.body);
        if request.body.get("$db").is_none() {
            command.append("$db", request.db);
        }
    });
    write_as(call, command.as_raw(), doc)
}

/// As [`write()`], for a command that is carried out as another one.
fn write_as(call: &mut Call<'_>, command: RawDoc<'_>, doc: RawDoc<'_>) -> Result<()> {
    let server = call.server;
    let reply = &mut call.reply;
    if doc.get("explainVersion").is_none() {
        reply.append("explainVersion", "1");
    }
    reply.append_fields(doc);
    reply.append("command", command);
    let local = server.local_addr();
    let host = super::server_status::host_name(server);
    let host = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
    reply
        .doc("serverInfo")
        .append("host", host)
        .append("port", i32::from(local.port()))
        .append("version", MONGODB_VERSION)
        .append("gitVersion", "");
    reply.doc("serverParameters").append("internalQueryMaxBlockingSortMemoryUsageBytes", 100 << 20);
    Ok(())
}
