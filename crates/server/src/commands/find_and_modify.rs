//! `findAndModify`: changes or removes one document and returns it, as it was or as it is.

use std::sync::Arc;

use espalier_query::update::Update as Spec;
use espalier_store::{CommitToken, Delete, Hint, Update, Want};
use espalier_value::DocBuf;

use super::asked::{asks_for, may_on_collection};
use super::prelude::*;
use super::update::{check_update, parse_array_filters};
use crate::call::Written;
use crate::parse;
use crate::sessions::StatementIds;
use crate::write_batch;
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "findAndModify",
    aliases: &["findandmodify"],
    doc: "Updates or removes one document and returns it.",
    privilege: Privilege::Asked {
        doc: "`find` and `update` or `remove` on the collection; `insert` with `upsert`",
        may,
    },
    stable: true,
    writes: true,
    retryable: true,
    run: find_and_modify,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let mut needed = vec![Action::Find];
    needed.push(if asks_for(request, "remove") { Action::Remove } else { Action::Update });
    needed.extend(asks_for(request, "upsert").then_some(Action::Insert));
    needed.extend(asks_for(request, "bypassDocumentValidation").then_some(Action::BypassDocumentValidation));
    may_on_collection(request, rights, &needed)
}

/// What a `findAndModify` asks for.
pub(super) enum Write {
    Update(Box<Update>),
    Remove(Box<Delete>),
}

fn find_and_modify(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let ns = request.namespace()?;
    write_batch::check_writable(&ns, call)?;
    let server = call.server;
    let (write, ids) = parse(request, call)?;
    let id = ids.of(0);
    let concern = WriteConcern::of(request)?;
    write_batch::wait_for_writes_allowed(call)?;
    let mut retry = call.retry(request, 1)?;
    let statement = retry.as_ref().map(|retry| retry.statement(id));
    let mut commit = CommitToken::default();
    let image: Option<DocBuf>;
    match write {
        Write::Remove(mut delete) => {
            let done = match retry.as_mut().and_then(|retry| retry.deleted(id)) {
                Some(done) => done,
                None => {
                    delete.statement = statement;
                    let mut transaction = call.begin(&delete.context)?;
                    let done = transaction.delete(&ns, &delete)?;
                    server.metrics.docs_deleted.add(done.deleted);
                    call.told.counts.deleted = Some(done.deleted);
                    commit = call.commit(transaction)?;
                    done
                }
            };
            call.reply.doc("lastErrorObject").append("n", done.deleted as i32);
            image = done.image;
        }
        Write::Update(mut update) => {
            let done = match retry.as_mut().and_then(|retry| retry.updated(id)) {
                Some(done) => done,
                None => {
                    update.statement = statement;
                    let mut transaction = call.begin(&update.context)?;
                    let done = transaction.update(&ns, &update)?;
                    server.metrics.docs_updated.add(done.modified);
                    call.told.counts = Written::updated(&done);
                    commit = call.commit(transaction)?;
                    done
                }
            };
            let mut last = call.reply.doc("lastErrorObject");
            let n = done.matched + u64::from(done.upserted_id.is_some());
            last.append("n", n as i32).append("updatedExisting", done.matched > 0);
            if let Some(id) = &done.upserted_id {
                last.append_value("upserted", id);
            }
            drop(last);
            image = done.image;
        }
    };
    call.room.need(image.as_ref().map_or(0, |image| image.as_bytes().len()))?;
    match &image {
        Some(image) => call.reply.append("value", image),
        None => call.reply.append("value", ValueRef::Null),
    };
    if let Some(id) = retry.as_ref().and_then(|retry| retry.retried().first()) {
        call.reply.append("retriedStmtId", *id);
        server.metrics.retried_statements.add(1);
        server.metrics.retried_commands.add(1);
    }
    if commit != Default::default() {
        server.notifier.written(&ns);
    }
    concern.fulfil(call, commit)
}

pub(super) fn parse(request: &Request<'_>, call: &Call<'_>) -> Result<(Write, StatementIds)> {
    let (mut query, mut sort, mut projection, mut lets) = (RawDoc::EMPTY, None, None, None);
    let (mut update, mut hint): (_, Option<Hint>) = (None, None);
    let (mut remove, mut new, mut upsert, mut bypass) = (false, false, false, false);
    let (mut array_filters, mut collation) = (None, None);
    let mut ids = StatementIds::default();
    for field in request.fields("findAndModify") {
        match field.name() {
            "query" => query = field.doc()?.unwrap_or(RawDoc::EMPTY),
            "sort" => sort = field.doc()?,
            "fields" => projection = field.doc()?,
            "update" => update = Some(field.value()),
            "remove" => remove = field.bool_or_number()?.unwrap_or(false),
            "new" => new = field.bool_or_number()?.unwrap_or(false),
            "upsert" => upsert = field.bool_or_number()?.unwrap_or(false),
            "bypassDocumentValidation" => bypass = field.bool_or_number()?.unwrap_or(false),
            "arrayFilters" => array_filters = Some(parse_array_filters(&field)?),
            "hint" => hint = parse::hint(field.value())?,
            "collation" => collation = parse::collation(&field)?,
            "let" => lets = field.doc()?,
            "stmtId" => ids.take(&field)?,
            _ => return Err(field.unknown()),
        }
    }
    match (update, remove) {
        (None, false) => {
            return Err(Error::failed_to_parse("Either an update or remove=true must be specified"));
        }
        (Some(_), true) => {
            return Err(Error::failed_to_parse("Cannot specify both an update and remove=true"));
        }
        (None, true) if upsert => {
            return Err(Error::failed_to_parse("Cannot specify both upsert=true and remove=true "));
        }
        (None, true) if new => {
            let message = "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document";
            return Err(Error::failed_to_parse(message));
        }
        (None, true) if array_filters.is_some() => {
            return Err(Error::failed_to_parse("Cannot specify arrayFilters and remove=true"));
        }
        (Some(ValueRef::Array(_)), false) if array_filters.is_some() => {
            return Err(Error::failed_to_parse("Cannot specify 'arrayFilters' and a pipeline update"));
        }
        _ => {}
    }
    let mut context = call.context_on(&request.namespace()?, collation)?;
    let scope = parse::lets(lets, &mut context)?;
    let context = Arc::new(context);
    // Of several things that are wrong, MongoDB names the update first.
    let update = match update {
        None => None,
        Some(update) => {
            check_update(update)?;
            Some(Arc::new(Spec::parse(update, &array_filters.unwrap_or_default(), &scope)?))
        }
    };
    let filter = parse::filter(query, &scope)?;
    let (sort, natural) = parse::order(sort, &scope)?;
    let projection = parse::projection(projection, filter.source(), &scope)?;
    let hint = natural.or(hint);
    let write = match update {
        None => {
            let remove = Delete::new(filter, context);
            Write::Remove(Box::new(Delete { sort, hint, want_image: true, projection, ..remove }))
        }
        Some(update) => Write::Update(Box::new(Update {
            upsert,
            sort,
            hint,
            want: if new { Want::After } else { Want::Before },
            projection,
            new_id: call.server.ids.object_id().0,
            bypass_validation: bypass,
            ..Update::new(filter, update, context)
        })),
    };
    Ok((write, ids))
}
