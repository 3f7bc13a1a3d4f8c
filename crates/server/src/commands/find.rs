//! `find`: the documents that match a filter.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::stage::Pipeline;
use espalier_store::{Find, Namespace, Tailable};
use espalier_value::DocBuf;

use super::prelude::*;
use crate::cursors::{First, OpenCursor, Source, write_first};
use crate::fields::Field;
use crate::parse;
use crate::pipeline::{self, How};
use crate::views;

pub(super) static COMMAND: Command = Command {
    name: "find",
    doc: "Returns the documents that match a filter.",
    privilege: Privilege::Collection(&[Action::Find]),
    stable: true,
    reads: true,
    run: find,
    ..Command::BASE
};

const PARENT: &str = "FindCommandRequest";

/// A parsed `find`.
pub(super) struct FindRequest {
    pub ns: Namespace,
    pub find: Find,
    batch_size: Option<u64>,
    single_batch: bool,
    no_timeout: bool,
}

fn find(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let FindRequest { ns, find, batch_size, single_batch, no_timeout } = parse(request, call)?;
    if find.tailable.is_some() && call.transaction.is_some() {
        let message = "It is illegal to open a tailable cursor in a transaction";
        return Err(Error::new(Code::InvalidOptions, message));
    }
    call.server.metrics.queries.add(1);
    let transaction = call.begin(&find.context)?;
    if let Some(view) = views::resolve(&*transaction, &ns)? {
        let stages = views::find_stages(&view, request.body)?;
        let pipeline = Pipeline::parse(stages.as_raw(), &Scope::of(&find.context), &find.context)?;
        let how = How { context: &find.context, hint: find.hint.as_ref(), allow_disk_use: find.allow_disk_use };
        let source = pipeline::open(&pipeline, &view.below, &how, transaction, call)?;
        let mut cursor = Box::new(OpenCursor::new(ns, Arc::clone(&find.context), source));
        cursor.session = call.lsid;
        let name = cursor.ns.to_string();
        return write_first(call, cursor, &name, First { batch_size, ..First::default() });
    }
    // Only an empty first batch leaves the difference between nothing and nothing yet to us.
    if (batch_size == Some(0) || find.tailable.is_some()) && transaction.collection(&ns)?.is_none() {
        return write_nothing(call, &ns);
    }
    if (find.min.is_some() || find.max.is_some()) && find.hint.is_none() && transaction.collection(&ns)?.is_some() {
        let message = "When using min()/max() a hint of which index to use must be provided";
        return Err(Error::new(Code(51173), message));
    }
    let source = Source::Find(transaction.find(&ns, &find)?);
    let mut cursor = Box::new(OpenCursor::new(ns.clone(), Arc::clone(&find.context), source));
    cursor.session = call.lsid;
    cursor.tailable = find.tailable;
    cursor.left = if is_id_lookup(&find) { Some(1) } else { find.limit };
    cursor.no_timeout = no_timeout;
    write_first(call, cursor, &ns.to_string(), First { batch_size, single_batch, id_first: false })?;
    if call.told.returned == 0 && transaction.collection(&ns)?.is_none() {
        return write_nothing(call, &ns);
    }
    Ok(())
}

/// The reply for a collection that does not exist, in the order in which MongoDB writes it.
fn write_nothing(call: &mut Call<'_>, ns: &Namespace) -> Result<()> {
    call.reply.reset();
    let mut cursor = call.reply.doc("cursor");
    cursor.append("id", 0i64).append("ns", &ns.to_string());
    cursor.array("firstBatch");
    Ok(())
}

/// Whether the filter is `{_id: value}`, which one document can match at most.
fn is_id_lookup(find: &Find) -> bool {
    let mut conditions = find.filter.source().iter();
    let (Some(first), None) = (conditions.next(), conditions.next()) else { return false };
    let plain = match first.value() {
        ValueRef::Document(doc) => doc.first().is_none_or(|elem| !elem.name_bytes().starts_with(b"$")),
        ValueRef::Array(_) | ValueRef::Regex(..) => false,
        _ => true,
    };
    plain && first.name_bytes() == b"_id" && find.skip == 0 && find.tailable.is_none()
}

/// Reads all fields of a `find`.
pub(super) fn parse(request: &Request<'_>, call: &Call<'_>) -> Result<FindRequest> {
    let (mut filter, mut projection, mut sort, mut hint, mut lets) = (RawDoc::EMPTY, None, None, None, None);
    let (mut skip, mut limit, mut batch_size) = (0, None, None);
    let (mut min, mut max, mut collation) = (None, None, None);
    let (mut single_batch, mut tailable, mut await_data, mut no_timeout) = (false, false, false, false);
    let (mut return_key, mut show_record_id, mut allow_disk_use) = (false, false, true);
    for field in request.fields(PARENT) {
        match field.name() {
            "filter" => filter = document(&field)?,
            "projection" => projection = Some(document(&field)?),
            "sort" => sort = Some(document(&field)?),
            "hint" => hint = parse::hint(field.value())?,
            "skip" => skip = field.count()?.unwrap_or(0),
            "limit" => limit = field.count()?.filter(|limit| *limit > 0),
            "batchSize" => batch_size = field.count()?,
            "singleBatch" => single_batch = flag(&field)?,
            "min" => min = Some(document(&field)?).filter(|doc| !doc.is_empty()),
            "max" => max = Some(document(&field)?).filter(|doc| !doc.is_empty()),
            "returnKey" => return_key = flag(&field)?,
            "showRecordId" => show_record_id = flag(&field)?,
            "tailable" => tailable = flag(&field)?,
            "awaitData" => await_data = flag(&field)?,
            "noCursorTimeout" => no_timeout = flag(&field)?,
            "allowPartialResults" | "oplogReplay" => {
                flag(&field)?;
            }
            "allowDiskUse" => allow_disk_use = flag(&field)?,
            "collation" => collation = Some(document(&field)?).filter(|doc| !doc.is_empty()),
            "let" => lets = field.doc()?,
            "term" | "options" | "maxScan" | "snapshot" | "readOnce" | "resumeAfter" | "requestResumeToken" => {
                return Err(field.unknown());
            }
            "ntoreturn" => {
                let message = "the ntoreturn find command parameter is not supported";
                return Err(Error::new(Code(5_746_102), message));
            }
            _ => return Err(field.unknown()),
        }
    }
    let ns = request.namespace()?;
    let mut context = call.context_on(&ns, collation)?;
    let scope = parse::lets(lets, &mut context)?;
    let filter = parse::filter(filter, &scope)?;
    let projection = parse::projection(projection, filter.source(), &scope)?;
    let (order, natural) = parse::order(sort, &scope)?;
    if await_data && !tailable {
        return Err(Error::failed_to_parse("Cannot set 'awaitData' without also setting 'tailable'"));
    }
    if tailable && (order.is_some() || matches!(natural, Some(espalier_store::Hint::Natural { reverse: true }))) {
        return Err(Error::bad_value("cannot use tailable option with a sort other than {$natural: 1}"));
    }
    if tailable && single_batch {
        return Err(Error::bad_value("cannot use tailable option with the 'singleBatch' option"));
    }
    let tailable = match (tailable, await_data) {
        (true, true) => Some(Tailable::Await),
        (true, false) => Some(Tailable::Tail),
        _ => None,
    };
    let mut find = Find::new(filter, Arc::new(context));
    find.sort = order;
    find.projection = projection;
    find.skip = skip;
    find.limit = limit;
    find.hint = natural.or(hint);
    find.min = min.map(DocBuf::from_raw);
    find.max = max.map(DocBuf::from_raw);
    find.return_key = return_key;
    find.show_record_id = show_record_id;
    find.tailable = tailable;
    find.allow_disk_use = allow_disk_use;
    Ok(FindRequest { ns, find, batch_size, single_batch, no_timeout })
}

/// `find` does not take null for a document.
fn document<'a>(field: &Field<'a, '_>) -> Result<RawDoc<'a>> {
    match field.value() {
        ValueRef::Document(doc) => Ok(doc),
        _ => Err(Error::type_mismatch(format!("Expected field {}to be of type object", field.name()))),
    }
}

/// Nor does it take a number for a boolean.
fn flag(field: &Field<'_, '_>) -> Result<bool> {
    match field.value() {
        ValueRef::Bool(value) => Ok(value),
        other => Err(Error::type_mismatch(format!(
            "Field '{}' should be a boolean value, but found: {}",
            field.name(),
            other.ty().name()
        ))),
    }
}
