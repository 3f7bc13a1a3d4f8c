//! `$out`: the results go into a collection of their own, with the options and indexes of the one they will replace,
//! and take its name at the end. Whoever reads sees the old documents until then.
//!
//! A collection that patterns have to do with is not replaced but emptied and filled, in one transaction: patterns are told of
//! documents that come and go.

use std::sync::Arc;

use espalier_query::update::prepare_insert;
use espalier_query::{Filter, Stream};
use espalier_store::{
    Begin, CollectionOptions, CommitToken, Delete, Find, IndexSpec, Insert, Mode, Namespace, Transaction,
};
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
    let patterned = !call.raw && transaction.layer(ns)?.is_some();
    let result = match patterned {
        false => fill(ns, &temporary, stream, writing, call, &mut *transaction),
        true => fill_patterned(ns, &temporary, stream, writing, call, &mut *transaction),
    };
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
    if !patterned {
        call.server.cursors.end_collection(ns, "collection dropped");
    }
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
    insert_all(temporary, stream, writing, call, transaction)?;
    transaction.rename(temporary, ns, true)
}

fn fill_patterned(
    ns: &Namespace,
    temporary: &Namespace,
    stream: &mut dyn Stream,
    writing: &Writing<'_>,
    call: &Call<'_>,
    transaction: &mut dyn Transaction,
) -> Result<()> {
    // The pipeline may read what it replaces, so it ends before anything is taken away.
    transaction.create(temporary, &CollectionOptions::default())?;
    insert_all(temporary, stream, writing, call, transaction)?;
    loop {
        writing.context.interrupt.check()?;
        match replace_documents(ns, temporary, writing, call) {
            Err(error) if error.code() == Code::WriteConflict => {}
            Err(error) if error.code() == Code::TransactionTooLarge => {
                let message = format!(
                    "$out into {ns}, which patterns have to do with, is one transaction: {}; use $merge, which is many",
                    error.message()
                );
                return Err(Error::new(error.code(), message));
            }
            Err(error) => return Err(error),
            Ok(()) => return transaction.drop_collection(temporary).map(drop),
        }
    }
}

/// Takes all documents away and puts those of the temporary collection in their place.
fn replace_documents(ns: &Namespace, temporary: &Namespace, writing: &Writing<'_>, call: &Call<'_>) -> Result<()> {
    let context = writing.context.clone();
    let begin = Begin { mode: Mode::Transaction, want_changes: false, raw: false, context: context.clone() };
    let mut transaction = call.server.store.begin(begin)?;
    let all = Arc::new(Filter::empty());
    transaction.delete(ns, &Delete { multi: true, ..Delete::new(all.clone(), context.clone()) })?;
    let mut results = transaction.find(temporary, &Find::new(all, context))?;
    let mut batch = Batch::default();
    while results.advance()? {
        writing.context.interrupt.check()?;
        if batch.push(DocBuf::from_raw(results.doc())) {
            insert(ns, &batch.take(), writing, &mut *transaction)?;
        }
    }
    insert(ns, &batch.take(), writing, &mut *transaction)?;
    call.commit(transaction).map(drop)
}

/// Documents that are inserted at once.
#[derive(Default)]
struct Batch {
    docs: Vec<DocBuf>,
    bytes: usize,
}

impl Batch {
    /// True if it is full.
    fn push(&mut self, doc: DocBuf) -> bool {
        self.bytes += doc.len_bytes();
        self.docs.push(doc);
        self.bytes >= BATCH_BYTES || self.docs.len() >= BATCH_DOCS
    }

    fn take(&mut self) -> Vec<DocBuf> {
        self.bytes = 0;
        std::mem::take(&mut self.docs)
    }
}

fn insert_all(
    temporary: &Namespace,
    stream: &mut dyn Stream,
    writing: &Writing<'_>,
    call: &Call<'_>,
    transaction: &mut dyn Transaction,
) -> Result<()> {
    let mut batch = Batch::default();
    loop {
        writing.context.interrupt.check()?;
        let more = stream.advance()?;
        let full = more && batch.push(prepared(stream.doc(), call)?);
        if full || !more {
            let docs = batch.take();
            insert(temporary, &docs, writing, transaction)?;
            call.server.metrics.docs_inserted.add(docs.len() as u64);
        }
        if !more {
            return Ok(());
        }
    }
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
    if batch.is_empty() {
        return Ok(());
    }
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
