//! `distinct`: the different values of a field among the documents that match.

use std::sync::Arc;

use espalier_query::Stream;
use espalier_query::expression::Scope;
use espalier_query::stage::Pipeline;
use espalier_store::{Find, Namespace};
use espalier_value::RawArray;

use super::prelude::*;
use crate::cursors::BATCH_BYTES_MAX;
use crate::pipeline::{self, How};
use crate::views::{self, Resolved};
use crate::{fields, parse};

pub(super) static COMMAND: Command = Command {
    name: "distinct",
    doc: "Returns the different values of a field.",
    privilege: Privilege::Collection(&[Action::Find]),
    stable: true,
    reads: true,
    run: distinct,
    ..Command::BASE
};

fn distinct(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (ns, key, find) = parse(request, call)?;
    let transaction = call.begin(&find.context)?;
    if let Some(view) = views::resolve(&*transaction, &ns)? {
        let pipeline = distinct_pipeline(&view, request, key, &find)?;
        let how = How { context: &find.context, hint: None, allow_disk_use: true };
        let mut found = pipeline::open(&pipeline, &view.below, &how, transaction, call)?;
        let values = if found.advance()? { found.doc().get("distinct") } else { None };
        call.reply.append("values", values.unwrap_or(ValueRef::Array(RawArray::of(RawDoc::EMPTY))));
        write_time(call);
        return Ok(());
    }
    let values = transaction.distinct(&ns, key, &find)?;
    let mut array = call.reply.array("values");
    for value in &values {
        call.room.need(array.len_bytes())?;
        array.push(value.or_null());
        if array.len_bytes() > BATCH_BYTES_MAX {
            let message = "distinct too big, 16mb cap";
            return Err(Error::new(Code(17217), message));
        }
    }
    drop(array);
    write_time(call);
    Ok(())
}

fn write_time(call: &mut Call<'_>) {
    if let Some(time) = call.snapshot_time() {
        call.reply.append_timestamp("atClusterTime", time);
    }
}

/// The pipeline that gathers the values of a view.
pub(super) fn distinct_pipeline(view: &Resolved, request: &Request<'_>, key: &str, find: &Find) -> Result<Pipeline> {
    let stages = views::distinct_stages(view, request.body, key);
    Pipeline::parse(stages.as_raw(), &Scope::of(&find.context), &find.context)
}

pub(super) fn parse<'a>(request: &Request<'a>, call: &Call<'_>) -> Result<(Namespace, &'a str, Find)> {
    let (mut query, mut key, mut collation) = (RawDoc::EMPTY, None, None);
    for field in request.fields("distinct") {
        match field.name() {
            "key" => key = field.str()?,
            "query" => query = field.doc()?.unwrap_or(RawDoc::EMPTY),
            "collation" => collation = parse::collation(&field)?,
            _ => return Err(field.unknown()),
        }
    }
    let ns = request.namespace_of_name()?;
    let key = key.ok_or_else(|| fields::missing("distinct", "key"))?;
    if key.is_empty() {
        return Err(Error::new(Code(40352), "FieldPath cannot be constructed with empty string"));
    }
    if key.contains('\0') {
        return Err(Error::new(Code(31032), "Key field cannot contain an embedded null byte"));
    }
    let context = Arc::new(call.context_on(&ns, collation)?);
    Ok((ns, key, Find::new(parse::filter(query, &Scope::of(&context))?, context)))
}
