//! `$out`: the results go into a collection of their own, with the options and indexes of the one they will replace,
//! and take its name at the end. Whoever reads sees the old documents until then.

use espalier_query::Stream;
use espalier_query::update::prepare_insert;
use espalier_store::{CommitToken, IndexSpec, Insert, Namespace, Transaction};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

use super::{Writing, while_running};
use crate::call::Call;

/// How the names of collections begin that are being written.
pub const TEMPORARY: &str = "tmp.agg_out.";

/// Bytes of documents that are inserted at once.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_DOCS: usize = 1_000;

pub fn write(ns: &Namespace, stream: &mut dyn Stream, writing: &Writing<'_>, call: &Call<'_>) -> Result<CommitToken> {
    let mut transaction = call.begin(writing.context)?;
    let id: String = call.server.ids.uuid().iter().map(|byte| format!("{byte:02x}")).collect();
    let temporary = Namespace::new(ns.db(), &format!("{TEMPORARY}{id}"));
    let result = fill(ns, &temporary, stream, writing, call, &mut *transaction);
    if let Err(error) = result {
        // The first error is the one to tell; what cannot be dropped now is dropped at the next start.
        if let Err(second) = transaction.drop_collection(&temporary) {
            let (name, why) = (temporary.to_string(), second.to_string());
            call.server.log.warn("command", "a temporary collection is left over", &[("ns", &name), ("error", &why)]);
        }
        call.commit(transaction)?;
        return Err(while_running(error));
    }
    let commit = call.commit(transaction)?;
    call.server.cursors.end_collection(ns, "collection dropped");
    Ok(commit)
}

fn fill(
    ns: &Namespace,
    temporary: &Namespace,
    stream: &mut dyn Stream,
    writing: &Writing<'_>,
    call: &Call<'_>,
    transaction: &mut dyn Transaction,
) -> Result<()> {
    let options = transaction.collection(ns)?.map(|info| info.options).unwrap_or_default();
    if options.capped.is_some() {
        let message = format!("namespace '{ns}' is capped so it can't be used for $out");
        return Err(Error::new(Code(17152), message));
    }
    let indexes = transaction.indexes(ns)?;
    let indexes: Vec<IndexSpec> = indexes.into_iter().map(|index| index.spec).filter(|spec| !spec.is_id()).collect();
    transaction.create(temporary, &options)?;
    if !indexes.is_empty() {
        transaction.create_indexes(temporary, &indexes)?;
    }
    let mut batch: Vec<DocBuf> = Vec::new();
    let mut bytes = 0;
    loop {
        writing.context.interrupt.check()?;
        let more = stream.advance()?;
        if more {
            let doc = prepared(stream.doc(), call)?;
            bytes += doc.len_bytes();
            batch.push(doc);
        }
        if !batch.is_empty() && (!more || bytes >= BATCH_BYTES || batch.len() >= BATCH_DOCS) {
            insert(temporary, &batch, writing, transaction)?;
            call.server.metrics.docs_inserted.add(batch.len() as u64);
            batch.clear();
            bytes = 0;
        }
        if !more {
            break;
        }
    }
    transaction.rename(temporary, ns, true)
}

/// With an `_id`, and it first.
pub fn prepared(doc: RawDoc<'_>, call: &Call<'_>) -> Result<DocBuf> {
    let server = call.server;
    let max = server.options.limits.document_bytes_max as usize;
    let doc = DocBuf::from_raw(prepare_insert(doc, || server.ids.object_id().0, server.clock.next())?.as_raw());
    if doc.len_bytes() > max {
        let message = format!("object to insert too large. size in bytes: {}, max size: {max}", doc.len_bytes());
        return Err(Error::new(Code::BSONObjectTooLarge, message));
    }
    Ok(doc)
}

fn insert(ns: &Namespace, batch: &[DocBuf], writing: &Writing<'_>, transaction: &mut dyn Transaction) -> Result<()> {
    let docs: Vec<RawDoc<'_>> = batch.iter().map(DocBuf::as_raw).collect();
    let how = Insert {
        ordered: true,
        bypass_validation: writing.bypass_validation,
        statements: None,
        context: writing.context.clone(),
    };
    let inserted = transaction.insert(ns, &docs, &how)?;
    inserted.errors.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}
