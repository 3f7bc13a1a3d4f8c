//! `update`: changes documents, one or all that match, and may insert where none does.

use std::sync::Arc;
use std::time::Instant;

use espalier_query::expression::Scope;
use espalier_query::update::{Kind, Update as Spec};
use espalier_query::{Context, Filter};
use espalier_store::{Hint, Namespace, Transaction, Update};
use espalier_value::{DocBuf, RawArray, Value, doc, validate};

use super::asked::{asks_for, is_truthy, may_on_collection};
use super::prelude::*;
use crate::call::Written;
use crate::fields;
use crate::parse;
use crate::request::Batch;
use crate::sessions::StatementIds;
use crate::write_batch::{self, WriteErrors};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "update",
    doc: "Updates documents.",
    privilege: Privilege::Asked {
        doc: "`update` on the collection; `insert` with `upsert`, `bypassDocumentValidation` if it asks for that",
        may,
    },
    stable: true,
    writes: true,
    retryable: true,
    run: update,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let upserts = request.sequence("updates").into_iter().flatten().filter_map(|bytes| validate(bytes).ok());
    let in_body = request.body.get("updates").and_then(ValueRef::as_array).into_iter().flat_map(RawArray::iter);
    let mut upserts = upserts.chain(in_body.filter_map(ValueRef::as_doc));
    let upsert = upserts.any(|entry| entry.iter().any(|elem| elem.name() == "upsert" && is_truthy(elem.value())));
    let mut needed = vec![Action::Update];
    needed.extend(upsert.then_some(Action::Insert));
    needed.extend(asks_for(request, "bypassDocumentValidation").then_some(Action::BypassDocumentValidation));
    may_on_collection(request, rights, &needed)
}

const ENTRY: &str = "update.updates";

/// One entry of the batch, its form checked.
pub(super) struct Entry<'a> {
    q: RawDoc<'a>,
    u: ValueRef<'a>,
    constants: Option<RawDoc<'a>>,
    collation: Option<RawDoc<'a>>,
    array_filters: Vec<RawDoc<'a>>,
    pub multi: bool,
    upsert: bool,
    hint: Option<Hint>,
}

/// A parsed `update`.
pub(super) struct UpdateRequest<'a> {
    pub entries: Vec<Entry<'a>>,
    ordered: bool,
    ids: StatementIds,
    bypass: bool,
    lets: Option<RawDoc<'a>>,
}

fn update(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let ns = request.namespace()?;
    write_batch::check_writable(&ns, call)?;
    let parsed = parse(request, call)?;
    let concern = WriteConcern::of(request)?;
    let mut retry = call.retry(request, parsed.entries.len())?;
    write_batch::wait_for_writes_allowed(call)?;
    let server = call.server;
    let (scope, context) = parsed.context(&ns, call)?;
    let mut transaction = call.begin(&context)?;
    let (mut matched, mut modified) = (0, 0);
    let mut upserted: Vec<(usize, Value<'static>)> = Vec::new();
    let mut errors = WriteErrors::default();
    for (index, entry) in parsed.entries.iter().enumerate() {
        let id = parsed.ids.of(index);
        if let Some(done) = retry.as_mut().and_then(|retry| retry.updated(id)) {
            matched += done.matched + u64::from(done.upserted_id.is_some());
            modified += done.modified;
            upserted.extend(done.upserted_id.map(|id| (index, id)));
            continue;
        }
        let began = (Instant::now(), call.work.total());
        let result = entry.prepare(&scope, &context, server.ids.object_id().0, parsed.bypass).and_then(|mut update| {
            update.statement = retry.as_ref().map(|retry| retry.statement(id));
            if update.multi && update.statement.is_some() {
                let message = "Cannot use (or request) retryable writes with multi=true";
                return Err(Error::new(Code::InvalidOptions, message));
            }
            transaction.update(&ns, &update)
        });
        match result {
            Ok(done) => {
                call.statement(request.db, began, Written::updated(&done), || entry.shown());
                matched += done.matched + u64::from(done.upserted_id.is_some());
                modified += done.modified;
                upserted.extend(done.upserted_id.map(|id| (index, id)));
            }
            Err(error) if write_batch::is_fatal(&error) => {
                return end(call, transaction, error);
            }
            Err(error) => {
                errors.push(index, error);
                if parsed.ordered || call.transaction.is_some() {
                    break;
                }
            }
        }
    }
    let commit = call.commit(transaction)?;
    server.metrics.updates.add(parsed.entries.len() as u64);
    server.metrics.docs_updated.add(modified);
    let found = matched - upserted.len() as u64;
    call.told.counts = Written {
        matched: Some(found),
        modified: Some(modified),
        upserted: Some(upserted.len() as u64),
        ..Written::default()
    };
    call.reply.append_count("n", matched);
    errors.write(call);
    write_batch::write_retried(call, retry.as_ref());
    if !upserted.is_empty() {
        let mut array = call.reply.array("upserted");
        for (index, id) in &upserted {
            array.push_doc().append("index", *index as i32).append_value("_id", id);
        }
    }
    call.reply.append_count("nModified", modified);
    write_batch::finish(call, &ns, &concern, commit)
}

/// What was written before a command had to end stays written, and others may have seen it: it is committed.
pub(super) fn end(call: &Call<'_>, transaction: Box<dyn Transaction>, error: Error) -> Result<()> {
    call.commit(transaction)?;
    Err(error)
}

pub(super) fn parse<'a>(request: &Request<'a>, call: &Call<'_>) -> Result<UpdateRequest<'a>> {
    let (mut updates, mut ordered, mut bypass, mut lets) = (None, true, false, None);
    let mut ids = StatementIds::default();
    for field in request.fields("update") {
        match field.name() {
            "updates" => updates = field.array()?.map(Batch::Array),
            "ordered" => ordered = field.bool()?.unwrap_or(true),
            "bypassDocumentValidation" => bypass = field.bool_or_number()?.unwrap_or(false),
            "let" => lets = field.doc()?,
            "stmtId" | "stmtIds" => ids.take(&field)?,
            "isTimeseriesNamespace" => field.refuse_unless_false()?,
            _ => return Err(field.unknown()),
        }
    }
    let batch = write_batch::batch(request, "updates", call, updates)?;
    ids.check(batch.len())?;
    let entries = batch.docs(ENTRY).map(|doc| Entry::parse(doc?)).collect::<Result<_>>()?;
    Ok(UpdateRequest { entries, ordered, ids, bypass, lets })
}

impl UpdateRequest<'_> {
    /// The context of the writes, with the command's `let`.
    pub fn context(&self, ns: &Namespace, call: &Call<'_>) -> Result<(Scope, Arc<Context>)> {
        let mut context = call.context_on(ns, None)?;
        let scope = parse::lets(self.lets, &mut context)?;
        Ok((scope, Arc::new(context)))
    }
}

impl<'a> Entry<'a> {
    /// As the profiler shows it.
    fn shown(&self) -> DocBuf {
        doc! { "q": self.q, "u": self.u, "multi": self.multi, "upsert": self.upsert }
    }

    fn parse(doc: RawDoc<'a>) -> Result<Entry<'a>> {
        let (mut q, mut u, mut constants, mut hint, mut collation) = (None, None, None, None, None);
        let (mut multi, mut upsert) = (false, false);
        let mut array_filters = Vec::new();
        for field in fields::fields(doc, ENTRY)? {
            match field.name() {
                "q" => q = field.doc()?,
                "u" => u = Some(field.value()),
                "c" => constants = field.doc()?,
                "multi" => multi = field.bool()?.unwrap_or(false),
                "upsert" => upsert = field.bool()?.unwrap_or(false),
                "upsertSupplied" => {
                    field.bool()?;
                }
                "collation" => collation = parse::collation(&field)?,
                "arrayFilters" => array_filters = parse_array_filters(&field)?,
                "hint" => hint = parse::hint(field.value())?,
                _ => return Err(field.unknown()),
            }
        }
        let q = q.ok_or_else(|| fields::missing(ENTRY, "q"))?;
        let u = u.ok_or_else(|| fields::missing(ENTRY, "u"))?;
        check_update(u)?;
        Ok(Entry { q, u, constants, array_filters, multi, upsert, hint, collation })
    }

    pub fn prepare(&self, scope: &Scope, context: &Arc<Context>, new_id: [u8; 12], bypass: bool) -> Result<Update> {
        if self.constants.is_some() && !matches!(self.u, ValueRef::Array(_)) {
            let message = "Constant values may only be specified for pipeline updates";
            return Err(Error::new(Code(51198), message));
        }
        let (mut scope, mut context) = parse::own_collation(self.collation, scope, context)?;
        if let Some(constants) = self.constants {
            let mut own = Context::new(context.now_ms, 0);
            own.cluster_time = context.cluster_time;
            own.collation.clone_from(&context.collation);
            own.collation_of.clone_from(&context.collation_of);
            own.interrupt = context.interrupt.clone();
            own.lets = context.lets.clone();
            own.lets.extend(constants.iter().map(|elem| (elem.name().into(), Value::own(elem.value()))));
            scope = Scope::of(&own);
            context = Arc::new(own);
        }
        let update = Spec::parse(self.u, &self.array_filters, &scope)?;
        let filter: Arc<Filter> = parse::filter(self.q, &scope)?;
        if self.multi && update.kind() == Kind::Replacement {
            return Err(Error::failed_to_parse("multi update is not supported for replacement-style update"));
        }
        Ok(Update {
            multi: self.multi,
            upsert: self.upsert,
            hint: self.hint.clone(),
            new_id,
            bypass_validation: bypass,
            ..Update::new(filter, Arc::new(update), context)
        })
    }
}

/// An update is a document or a pipeline.
pub(super) fn check_update(u: ValueRef<'_>) -> Result<()> {
    match u {
        ValueRef::Document(_) => Ok(()),
        ValueRef::Array(stages) => stages.iter().try_for_each(check_stage),
        _ => Err(Error::failed_to_parse("Update argument must be either an object or an array")),
    }
}

/// What is wrong with a stage at first sight is wrong with the whole command.
fn check_stage(stage: ValueRef<'_>) -> Result<()> {
    let ValueRef::Document(stage) = stage else {
        return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
    };
    let mut elems = stage.iter();
    let (Some(first), None) = (elems.next(), elems.next()) else {
        let message = "A pipeline stage specification object must contain exactly one field.";
        return Err(Error::new(Code(40323), message));
    };
    if espalier_query::stage::registry().all(|entry| entry.name != first.name()) {
        let message = format!("Unrecognized pipeline stage name: '{}'", first.name());
        return Err(Error::new(Code(40324), message));
    }
    Ok(())
}

pub(super) fn parse_array_filters<'a>(field: &fields::Field<'a, '_>) -> Result<Vec<RawDoc<'a>>> {
    let Some(array) = field.array()? else { return Ok(Vec::new()) };
    let filters = array.elems().map(|elem| match elem.value() {
        ValueRef::Document(doc) => Ok(doc),
        other => Err(Error::type_mismatch(format!(
            "BSON field '{}.{}' is the wrong type '{}', expected type 'object'",
            field.path(),
            elem.name(),
            other.ty().name()
        ))),
    });
    filters.collect()
}
