//! One event as clients see it.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::{Context, Filter};
use espalier_store::{Begin, Event, EventKind, Find, Mode, Namespace, Store};
use espalier_value::{Code, DocBuf, Error, Result, ValueRef};

use super::options::{BeforeChange, FullDocument, Options};
use super::token::Token;

/// The document of an event, with what the stream asks for beside it.
pub fn document(event: &Event, options: &Options, store: &dyn Store, context: &Arc<Context>) -> Result<DocBuf> {
    let what = &event.what;
    let token = Token::Event { stamp: event.stamp, index: event.index, invalidate: false };
    let mut doc = DocBuf::with_capacity(what.document.as_ref().map_or(0, DocBuf::len_bytes) + 256);
    if let Some(transaction) = &event.transaction {
        doc.append("txnNumber", transaction.number).append("lsid", &transaction.lsid);
    }
    if let Some(to) = &what.to {
        doc.append_doc("to", |doc| name(doc, to));
    }
    doc.append("_id", &token.write())
        .append("operationType", what.kind.name())
        .append("clusterTime", ValueRef::Timestamp(event.stamp));
    if let Some(uuid) = event.uuid.filter(|_| options.expanded) {
        doc.append("collectionUUID", ValueRef::Binary(4, &uuid));
    }
    doc.append("wallTime", ValueRef::DateTime(event.wall_ms));
    match (what.kind, &what.document) {
        (EventKind::Insert | EventKind::Replace, Some(document)) => {
            doc.append("fullDocument", document);
        }
        (EventKind::Update, _) => append_full_document(&mut doc, event, options, store, context)?,
        _ => {}
    }
    doc.append_doc("ns", |doc| name(doc, &what.ns));
    if let Some(key) = &what.key {
        doc.append("documentKey", key);
    }
    if let Some(description) = &what.description {
        match what.kind {
            EventKind::Update => drop(doc.append("updateDescription", description)),
            _ if options.expanded => drop(doc.append("operationDescription", description)),
            _ => {}
        }
    }
    if let Some(state) = what.state_before.as_ref().filter(|_| options.expanded) {
        doc.append("stateBeforeChange", state);
    }
    if matches!(what.kind, EventKind::Update | EventKind::Replace | EventKind::Delete) {
        append_before(&mut doc, event, options)?;
    }
    Ok(doc)
}

/// The event that ends a stream on what is gone.
pub fn invalidate(event: &Event) -> DocBuf {
    let token = Token::Event { stamp: event.stamp, index: event.index, invalidate: true };
    let mut doc = DocBuf::new();
    doc.append("_id", &token.write())
        .append("operationType", "invalidate")
        .append("clusterTime", ValueRef::Timestamp(event.stamp))
        .append("wallTime", ValueRef::DateTime(event.wall_ms));
    doc
}

fn name(doc: &mut DocBuf, ns: &Namespace) {
    doc.append("db", ns.db());
    if !ns.collection().is_empty() {
        doc.append("coll", ns.collection());
    }
}

fn append_full_document(
    doc: &mut DocBuf,
    event: &Event,
    options: &Options,
    store: &dyn Store,
    context: &Arc<Context>,
) -> Result<()> {
    // The log knows every document after an update, but it is available where the collection says so.
    let kept = event.what.document.as_ref().filter(|_| event.what.before.is_some());
    match options.full_document {
        FullDocument::Default => return Ok(()),
        FullDocument::UpdateLookup => match look_up(event, store, context)? {
            Some(found) => doc.append("fullDocument", &found),
            None => doc.append("fullDocument", ValueRef::Null),
        },
        FullDocument::WhenAvailable | FullDocument::Required => match kept {
            Some(document) => doc.append("fullDocument", document),
            None if options.full_document == FullDocument::Required => {
                return Err(not_found(event, "post-image for all update events, but the post-image"));
            }
            None => doc.append("fullDocument", ValueRef::Null),
        },
    };
    Ok(())
}

fn append_before(doc: &mut DocBuf, event: &Event, options: &Options) -> Result<()> {
    match (&event.what.before, options.before_change) {
        (_, BeforeChange::Off) => {}
        (Some(before), _) => drop(doc.append("fullDocumentBeforeChange", before)),
        (None, BeforeChange::WhenAvailable) => drop(doc.append("fullDocumentBeforeChange", ValueRef::Null)),
        (None, BeforeChange::Required) => {
            return Err(not_found(event, "pre-image for all update, delete and replace events, but the pre-image"));
        }
    }
    Ok(())
}

fn not_found(event: &Event, what: &str) -> Error {
    let (kind, ns) = (event.what.kind.name(), &event.what.ns);
    let message = format!(
        "Change stream was configured to require a {what} was not found for event: {{operationType: \"{kind}\", ns: \
         {{db: \"{}\", coll: \"{}\"}}, clusterTime: Timestamp({}, {})}}",
        ns.db(),
        ns.collection(),
        event.stamp >> 32,
        event.stamp as u32
    );
    Error::new(Code::NoMatchingDocument, message)
}

/// The document as it is now, if it is still there and its collection the same.
fn look_up(event: &Event, store: &dyn Store, context: &Arc<Context>) -> Result<Option<DocBuf>> {
    let Some(key) = &event.what.key else { return Ok(None) };
    let begin = Begin { mode: Mode::Auto, want_changes: false, raw: false, context: Arc::clone(context) };
    let transaction = store.begin(begin)?;
    let is_same = |uuid: [u8; 16]| event.uuid.is_none_or(|own| own == uuid);
    if !transaction.collection(&event.what.ns)?.is_some_and(|collection| is_same(collection.uuid)) {
        return Ok(None);
    }
    let mut equal = DocBuf::new();
    if let Some(id) = key.as_raw().get("_id") {
        equal.append_doc("_id", |doc| {
            doc.append("$eq", id);
        });
    }
    let filter = Filter::parse(equal.as_raw(), &Scope::default())?;
    let mut cursor = transaction.find(&event.what.ns, &Find::new(Arc::new(filter), Arc::clone(context)))?;
    Ok(if cursor.advance()? { Some(DocBuf::from_raw(cursor.doc())) } else { None })
}
