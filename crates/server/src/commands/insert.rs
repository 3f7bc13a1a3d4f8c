//! `insert`: new documents, in a batch, in order or not.

use std::sync::Arc;

use espalier_query::update::{Prepared, prepare_insert};
use espalier_store::{Insert, Inserted};

use super::asked::{asks_for, may_on_collection};
use super::prelude::*;
use crate::request::Batch;
use crate::sessions::StatementIds;
use crate::write_batch::{self, WriteErrors};
use crate::write_concern::WriteConcern;

pub(super) static COMMAND: Command = Command {
    name: "insert",
    doc: "Inserts documents.",
    privilege: Privilege::Asked {
        doc: "`insert` on the collection; `bypassDocumentValidation` if it asks for that",
        may,
    },
    stable: true,
    writes: true,
    retryable: true,
    run: insert,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let bypass = asks_for(request, "bypassDocumentValidation");
    may_on_collection(request, rights, &[Action::Insert])
        && (!bypass || may_on_collection(request, rights, &[Action::BypassDocumentValidation]))
}

fn insert(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut documents, mut ordered, mut bypass) = (None, true, false);
    let mut ids = StatementIds::default();
    for field in request.fields("insert") {
        match field.name() {
            "documents" => documents = field.array()?.map(Batch::Array),
            "ordered" => ordered = field.bool()?.unwrap_or(true),
            "bypassDocumentValidation" => bypass = field.bool_or_number()?.unwrap_or(false),
            "stmtId" | "stmtIds" => ids.take(&field)?,
            "isTimeseriesNamespace" => field.refuse_unless_false()?,
            _ => return Err(field.unknown()),
        }
    }
    let ns = request.namespace()?;
    write_batch::check_writable(&ns, call)?;
    let concern = WriteConcern::of(request)?;
    let batch = write_batch::batch(request, "documents", call, documents)?;
    ids.check(batch.len())?;
    let mut retry = call.retry(request, batch.len())?;
    write_batch::wait_for_writes_allowed(call)?;

    let server = call.server;
    let (max, time) = (server.options.limits.document_bytes_max, server.clock.next());
    let mut errors = WriteErrors::default();
    let mut prepared = Vec::with_capacity(batch.len());
    // Where a document stands in the client's batch.
    let mut places: Vec<usize> = Vec::with_capacity(batch.len());
    let mut inserted = 0;
    for (index, doc) in batch.docs("insert.documents").enumerate() {
        let doc = doc?;
        if retry.as_mut().is_some_and(|retry| retry.inserted(ids.of(index))) {
            inserted += 1;
            continue;
        }
        let ready = prepare_insert(doc, || server.ids.object_id().0, time).and_then(|ready| check_size(ready, max));
        match ready {
            Ok(ready) => {
                places.push(index);
                prepared.push(ready);
            }
            Err(error) => {
                errors.push(index, error);
                if ordered {
                    break;
                }
            }
        }
    }
    let docs: Vec<RawDoc<'_>> = prepared.iter().map(Prepared::as_raw).collect();
    let context = Arc::new(call.context());
    let mut transaction = call.begin(&context)?;
    if !docs.is_empty() {
        let statements =
            retry.as_ref().map(|retry| retry.statements(places.iter().map(|place| ids.of(*place)).collect()));
        // In a transaction the first error is the end, whatever the order.
        let ordered = ordered || call.transaction.is_some();
        let how = Insert { ordered, bypass_validation: bypass, statements, context };
        let result = transaction.insert(&ns, &docs, &how).or_else(|error| {
            // Each document of its own could not be inserted.
            let refused = if ordered { 1 } else { docs.len() };
            match error.code() {
                Code::CommandNotSupportedOnView | Code::OperationNotSupportedInTransaction => {
                    Ok(Inserted { inserted: 0, errors: (0..refused).map(|at| (at, error.clone())).collect() })
                }
                _ => Err(error),
            }
        })?;
        inserted += result.inserted;
        if ordered && !result.errors.is_empty() {
            // It stopped there, before the document that was refused above.
            errors = WriteErrors::default();
        }
        for (at, error) in result.errors {
            errors.push(places.get(at).copied().unwrap_or(at), error);
        }
    }
    let commit = call.commit(transaction)?;
    server.metrics.inserts.add(batch.len() as u64);
    server.metrics.docs_inserted.add(inserted);
    call.told.counts.inserted = Some(inserted);
    call.reply.append_count("n", inserted);
    errors.write(call);
    write_batch::write_retried(call, retry.as_ref());
    write_batch::finish(call, &ns, &concern, commit)
}

fn check_size(doc: Prepared<'_>, max: u64) -> Result<Prepared<'_>> {
    let size = doc.as_raw().as_bytes().len();
    if size as u64 > max {
        let message = format!("object to insert too large. size in bytes: {size}, max size: {max}");
        return Err(Error::new(Code::BadValue, message));
    }
    Ok(doc)
}
