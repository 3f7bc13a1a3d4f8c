//! `delete`: removes documents, one or all that match.

use std::sync::Arc;
use std::time::Instant;

use espalier_query::Context;
use espalier_query::expression::Scope;
use espalier_store::{Delete, Hint, Namespace};
use espalier_value::{DocBuf, doc};

use super::prelude::*;
use super::update::end;
use crate::call::Written;
use crate::fields;
use crate::parse;
use crate::request::Batch;
use crate::sessions::StatementIds;
use crate::write_batch::{self, WriteErrors};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "delete",
    doc: "Removes documents.",
    privilege: Privilege::Collection(&[Action::Remove]),
    stable: true,
    writes: true,
    retryable: true,
    run: delete,
    ..Command::BASE
};

const ENTRY: &str = "delete.deletes";

/// One entry of the batch, its form checked.
pub(super) struct Entry<'a> {
    q: RawDoc<'a>,
    multi: bool,
    hint: Option<Hint>,
    collation: Option<RawDoc<'a>>,
}

/// A parsed `delete`.
pub(super) struct DeleteRequest<'a> {
    pub entries: Vec<Entry<'a>>,
    ordered: bool,
    ids: StatementIds,
    lets: Option<RawDoc<'a>>,
}

fn delete(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let ns = request.namespace()?;
    write_batch::check_writable(&ns, call)?;
    let parsed = parse(request, call)?;
    let concern = WriteConcern::of(request)?;
    let mut retry = call.retry(request, parsed.entries.len())?;
    write_batch::wait_for_writes_allowed(call)?;
    let (scope, context) = parsed.context(&ns, call)?;
    let mut transaction = call.begin(&context)?;
    let mut deleted = 0;
    let mut errors = WriteErrors::default();
    for (index, entry) in parsed.entries.iter().enumerate() {
        let id = parsed.ids.of(index);
        if let Some(done) = retry.as_mut().and_then(|retry| retry.deleted(id)) {
            deleted += done.deleted;
            continue;
        }
        let began = (Instant::now(), call.work.total());
        let result = entry.prepare(&scope, &context).and_then(|mut delete| {
            delete.statement = retry.as_ref().map(|retry| retry.statement(id));
            if delete.multi && delete.statement.is_some() {
                let message = "Cannot use (or request) retryable writes with limit=0";
                return Err(Error::new(Code::InvalidOptions, message));
            }
            transaction.delete(&ns, &delete)
        });
        match result {
            Ok(done) => {
                let counts = Written { deleted: Some(done.deleted), ..Written::default() };
                call.statement(request.db, began, counts, || entry.shown());
                deleted += done.deleted;
            }
            Err(error) if write_batch::is_fatal(&error) => return end(call, transaction, error),
            Err(error) => {
                errors.push(index, error);
                if parsed.ordered || call.transaction.is_some() {
                    break;
                }
            }
        }
    }
    let commit = call.commit(transaction)?;
    call.server.metrics.deletes.add(parsed.entries.len() as u64);
    call.server.metrics.docs_deleted.add(deleted);
    call.told.counts.deleted = Some(deleted);
    call.reply.append_count("n", deleted);
    errors.write(call);
    write_batch::write_retried(call, retry.as_ref());
    write_batch::finish(call, &ns, &concern, commit)
}

pub(super) fn parse<'a>(request: &Request<'a>, call: &Call<'_>) -> Result<DeleteRequest<'a>> {
    let (mut deletes, mut ordered, mut lets) = (None, true, None);
    let mut ids = StatementIds::default();
    for field in request.fields("delete") {
        match field.name() {
            "deletes" => deletes = field.array()?.map(Batch::Array),
            "ordered" => ordered = field.bool()?.unwrap_or(true),
            "let" => lets = field.doc()?,
            "bypassDocumentValidation" => {
                field.bool_or_number()?;
            }
            "stmtId" | "stmtIds" => ids.take(&field)?,
            "isTimeseriesNamespace" => field.refuse_unless_false()?,
            _ => return Err(field.unknown()),
        }
    }
    let batch = write_batch::batch(request, "deletes", call, deletes)?;
    ids.check(batch.len())?;
    let entries = batch.docs(ENTRY).map(|doc| Entry::parse(doc?)).collect::<Result<_>>()?;
    Ok(DeleteRequest { entries, ordered, ids, lets })
}

impl DeleteRequest<'_> {
    /// The context of the writes, with the command's `let`.
    pub fn context(&self, ns: &Namespace, call: &Call<'_>) -> Result<(Scope, Arc<Context>)> {
        let mut context = call.context_on(ns, None)?;
        let scope = parse::lets(self.lets, &mut context)?;
        Ok((scope, Arc::new(context)))
    }
}

impl<'a> Entry<'a> {
    fn parse(doc: RawDoc<'a>) -> Result<Entry<'a>> {
        let (mut q, mut limit, mut hint, mut collation) = (None, None, None, None);
        for field in fields::fields(doc, ENTRY)? {
            match field.name() {
                "q" => q = field.doc()?,
                "limit" => limit = field.long()?,
                "collation" => collation = parse::collation(&field)?,
                "hint" => hint = parse::hint(field.value())?,
                _ => return Err(field.unknown()),
            }
        }
        let q = q.ok_or_else(|| fields::missing(ENTRY, "q"))?;
        let multi = match limit.ok_or_else(|| fields::missing(ENTRY, "limit"))? {
            0 => true,
            1 => false,
            other => {
                let message = format!("The limit field in delete objects must be 0 or 1. Got {other}");
                return Err(Error::failed_to_parse(message));
            }
        };
        Ok(Entry { q, multi, hint, collation })
    }

    /// As the profiler shows it.
    fn shown(&self) -> DocBuf {
        doc! { "q": self.q, "limit": i32::from(!self.multi) }
    }

    pub fn prepare(&self, scope: &Scope, context: &Arc<Context>) -> Result<Delete> {
        let (scope, context) = parse::own_collation(self.collation, scope, context)?;
        Ok(Delete {
            filter: parse::filter(self.q, &scope)?,
            multi: self.multi,
            sort: None,
            hint: self.hint.clone(),
            want_image: false,
            projection: None,
            statement: None,
            context,
        })
    }
}
