//! `$merge`: each result is looked for in the target by the fields that identify it, and what the stage says is done.
//!
//! As in MongoDB, a document that cannot be written does not keep those of the same batch from being written; the first
//! error is told at the end of the batch.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::stage::output::{Merge, WhenMatched, WhenNotMatched};
use espalier_query::update::Update as Spec;
use espalier_query::{Context, Filter, Stream};
use espalier_store::{CommitToken, Insert, Namespace, Transaction, Update};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef};

use super::out::prepared;
use super::{Writing, is_a_view, while_running};
use crate::call::Call;
use crate::write_batch::is_fatal;

/// Bytes of documents after which an error is told.
const BATCH_BYTES: usize = 16 << 20;

/// The fields of `on` must have a unique index, or two documents could match: one that compares strings as the command
/// does. Documents are looked for as the target compares them, whatever the command says.
pub fn check_unique(merge: &Merge, ns: &Namespace, context: &Context, transaction: &dyn Transaction) -> Result<()> {
    let Some(on) = &merge.on else { return Ok(()) };
    if let [path] = &on[..]
        && path.as_str() == "_id"
    {
        return Ok(());
    }
    let indexes = transaction.indexes(ns)?;
    let unique = indexes.iter().any(|index| {
        let spec = &index.spec;
        spec.unique
            && spec.partial.is_none()
            && spec.collation == context.collation
            && spec.parts.len() == on.len()
            && spec.parts.iter().all(|part| on.contains(&part.path))
    });
    if unique {
        return Ok(());
    }
    Err(Error::new(Code(51183), "Cannot find index to verify that join fields will be unique"))
}

pub fn write(
    merge: &Merge,
    ns: &Namespace,
    stream: &mut dyn Stream,
    writing: &Writing<'_>,
    call: &Call<'_>,
) -> Result<CommitToken> {
    let mut transaction = call.begin(writing.context)?;
    if transaction.view(ns)?.is_some() {
        return Err(while_running(is_a_view(ns)));
    }
    let context = Arc::new(writing.context.with_collation(call.collation(ns, None)?));
    let writing = &Writing { context: &context, ..*writing };
    let mut first_error = None;
    let mut bytes = 0;
    let result = loop {
        if let Err(error) = writing.context.interrupt.check() {
            break Err(error);
        }
        match stream.advance() {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
        let doc = stream.doc();
        bytes += doc.as_bytes().len();
        match one(merge, ns, doc, writing, call, &mut *transaction) {
            Err(error) if is_fatal(&error) => break Err(error),
            Err(error) => first_error = first_error.or(Some(error)),
            Ok(()) => {}
        }
        if bytes >= BATCH_BYTES {
            bytes = 0;
            if first_error.is_some() {
                break Ok(());
            }
        }
    };
    // What was written stays written, whatever happened after it.
    let commit = call.commit(transaction)?;
    match result.err().or(first_error) {
        Some(error) => Err(while_running(error)),
        None => Ok(commit),
    }
}

fn one(
    merge: &Merge,
    ns: &Namespace,
    doc: RawDoc<'_>,
    writing: &Writing<'_>,
    call: &Call<'_>,
    transaction: &mut dyn Transaction,
) -> Result<()> {
    let with_id;
    let doc = if merge.is_by_id() && doc.get("_id").is_none() {
        with_id = prepared(doc, call)?;
        with_id.as_raw()
    } else {
        doc
    };
    let filter = merge.filter(doc)?;
    if let WhenMatched::Fail = merge.when_matched {
        return insert(ns, doc, writing, call, transaction).map_err(|error| told(error, true));
    }
    let mut tried = 0;
    loop {
        let update = prepare(merge, &filter, doc, writing, call)?;
        let done = transaction.update(ns, &update).map_err(|error| told(error, false))?;
        call.server.metrics.docs_updated.add(done.modified);
        if done.matched > 0 || done.upserted_id.is_some() {
            return Ok(());
        }
        match merge.when_not_matched {
            WhenNotMatched::Discard => return Ok(()),
            WhenNotMatched::Fail => {
                let message = "$merge could not find a matching document in the target collection for at least one \
                               document in the source collection";
                return Err(Error::new(Code::MergeStageNoMatchingDocument, message));
            }
            WhenNotMatched::Insert => match insert(ns, doc, writing, call, transaction) {
                // Somebody else has inserted a match meanwhile: update that.
                Err(error) if error.code() == Code::DuplicateKey && tried == 0 => tried += 1,
                other => return other.map_err(|error| told(error, false)),
            },
        }
    }
}

fn prepare(merge: &Merge, filter: &DocBuf, doc: RawDoc<'_>, writing: &Writing<'_>, call: &Call<'_>) -> Result<Update> {
    let operator = |name: &str| {
        let mut update = DocBuf::new();
        update.append(name, doc);
        Spec::parse(ValueRef::Document(update.as_raw()), &[], &Scope::default()).map(Arc::new)
    };
    let mut context: Arc<Context> = Arc::clone(writing.context);
    let mut upsert = merge.when_not_matched == WhenNotMatched::Insert;
    let update = match &merge.when_matched {
        WhenMatched::Merge => operator("$set")?,
        WhenMatched::KeepExisting => operator("$setOnInsert")?,
        WhenMatched::Pipeline(pipeline) => {
            context = Arc::new(pipeline.context(doc, writing.context)?);
            // Where nothing matches, the new document is inserted, and not what the pipeline would make of nothing.
            upsert = false;
            pipeline.update.clone()
        }
        WhenMatched::Replace | WhenMatched::Fail => {
            Arc::new(Spec::parse(ValueRef::Document(doc), &[], &Scope::default())?)
        }
    };
    let filter = Arc::new(Filter::parse(filter.as_raw(), &Scope::of(writing.context))?);
    Ok(Update {
        upsert,
        new_id: call.server.ids.object_id().0,
        bypass_validation: writing.bypass_validation,
        ..Update::new(filter, update, context)
    })
}

fn insert(
    ns: &Namespace,
    doc: RawDoc<'_>,
    writing: &Writing<'_>,
    call: &Call<'_>,
    transaction: &mut dyn Transaction,
) -> Result<()> {
    let doc = prepared(doc, call)?;
    let how = Insert {
        ordered: true,
        bypass_validation: writing.bypass_validation,
        statements: None,
        context: Arc::clone(writing.context),
    };
    let inserted = transaction.insert(ns, &[doc.as_raw()], &how)?;
    call.server.metrics.docs_inserted.add(inserted.inserted);
    inserted.errors.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}

/// In MongoDB's words.
fn told(error: Error, inserting: bool) -> Error {
    match error.code() {
        Code::DuplicateKey if inserting => error.context(
            "$merge with whenMatched: fail found an existing document with the same values for the 'on' fields",
        ),
        Code::DuplicateKey => error.context("$merge failed due to a DuplicateKey error"),
        Code::ImmutableField => error.context(
            "$merge failed to update the matching document, did you attempt to modify the _id or the shard key?",
        ),
        _ => error,
    }
}
