//! `delete`: removes documents, one or all that match.

use std::sync::Arc;

use espalier_query::Context;
use espalier_query::expression::Scope;
use espalier_store::{Delete, Hint};

use super::prelude::*;
use super::update::end;
use crate::fields;
use crate::parse;
use crate::request::Batch;
use crate::write_batch::{self, WriteErrors};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "delete",
    doc: "Removes documents.",
    privilege: Privilege::Write,
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
}

/// A parsed `delete`.
pub(super) struct DeleteRequest<'a> {
    pub entries: Vec<Entry<'a>>,
    ordered: bool,
    lets: Option<RawDoc<'a>>,
}

fn delete(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let ns = request.namespace()?;
    write_batch::check_writable(&ns)?;
    let parsed = parse(request, call)?;
    let concern = WriteConcern::of(request)?;
    write_batch::wait_for_writes_allowed(call)?;
    let (scope, context) = parsed.context(call)?;
    let mut transaction = call.begin(&context)?;
    let mut deleted = 0;
    let mut errors = WriteErrors::default();
    for (index, entry) in parsed.entries.iter().enumerate() {
        let result = entry.prepare(&scope, &context);
        match result.and_then(|delete| transaction.delete(&ns, &delete)) {
            Ok(done) => deleted += done.deleted,
            Err(error) if write_batch::is_fatal(&error) => return end(call, transaction, error),
            Err(error) => {
                errors.push(index, error);
                if parsed.ordered {
                    break;
                }
            }
        }
    }
    let commit = call.commit(transaction)?;
    call.server.metrics.deletes.add(parsed.entries.len() as u64);
    call.server.metrics.docs_deleted.add(deleted);
    call.reply.append_count("n", deleted);
    errors.write(call);
    write_batch::finish(call, &ns, &concern, commit)
}

pub(super) fn parse<'a>(request: &Request<'a>, call: &Call<'_>) -> Result<DeleteRequest<'a>> {
    let (mut deletes, mut ordered, mut lets) = (None, true, None);
    for field in request.fields("delete") {
        match field.name() {
            "deletes" => deletes = field.array()?.map(Batch::Array),
            "ordered" => ordered = field.bool()?.unwrap_or(true),
            "let" => lets = field.doc()?,
            "bypassDocumentValidation" => {
                field.bool_or_number()?;
            }
            "stmtId" | "stmtIds" | "isTimeseriesNamespace" => {}
            _ => return Err(field.unknown()),
        }
    }
    let batch = write_batch::batch(request, "deletes", call, deletes)?;
    let entries = batch.docs(ENTRY).map(|doc| Entry::parse(doc?)).collect::<Result<_>>()?;
    Ok(DeleteRequest { entries, ordered, lets })
}

impl DeleteRequest<'_> {
    /// The context of the writes, with the command's `let`.
    pub fn context(&self, call: &Call<'_>) -> Result<(Scope, Arc<Context>)> {
        let mut context = call.context();
        let scope = parse::lets(self.lets, &mut context)?;
        Ok((scope, Arc::new(context)))
    }
}

impl<'a> Entry<'a> {
    fn parse(doc: RawDoc<'a>) -> Result<Entry<'a>> {
        let (mut q, mut limit, mut hint) = (None, None, None);
        for field in fields::fields(doc, ENTRY)? {
            match field.name() {
                "q" => q = field.doc()?,
                "limit" => limit = field.long()?,
                "collation" => parse::collation(&field)?,
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
        Ok(Entry { q, multi, hint })
    }

    pub fn prepare(&self, scope: &Scope, context: &Arc<Context>) -> Result<Delete> {
        Ok(Delete {
            filter: parse::filter(self.q, scope)?,
            multi: self.multi,
            sort: None,
            hint: self.hint.clone(),
            want_image: false,
            projection: None,
            context: Arc::clone(context),
        })
    }
}
