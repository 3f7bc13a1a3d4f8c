//! `count`: how many documents match.

use std::sync::Arc;

use espalier_query::Stream;
use espalier_query::expression::Scope;
use espalier_query::stage::Pipeline;
use espalier_store::{Find, Namespace};
use espalier_value::number::Number;

use super::prelude::*;
use crate::parse;
use crate::pipeline::{self, How};
use crate::views::{self, Resolved};

pub(super) static COMMAND: Command = Command {
    name: "count",
    doc: "Counts the documents that match a filter.",
    privilege: Privilege::Collection(&[Action::Find]),
    stable: true,
    reads: true,
    run: count,
    ..Command::BASE
};

fn count(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (ns, find) = parse(request, call)?;
    let transaction = call.begin(&find.context)?;
    let count = match views::resolve(&*transaction, &ns)? {
        Some(view) => {
            let pipeline = count_pipeline(&view, request, &find)?;
            let how = How { context: &find.context, hint: find.hint.as_ref(), allow_disk_use: true };
            let mut counted = pipeline::open(&pipeline, &view.below, &how, transaction, call)?;
            let count = if counted.advance()? { counted.doc().get("count").and_then(Number::of) } else { None };
            count.map_or(0, |count| u64::try_from(count.to_i64_clamped()).unwrap_or(0))
        }
        None => transaction.count(&ns, &find)?,
    };
    call.reply.append_count("n", count);
    Ok(())
}

/// The pipeline that counts what a view shows.
pub(super) fn count_pipeline(view: &Resolved, request: &Request<'_>, find: &Find) -> Result<Pipeline> {
    let stages = views::count_stages(view, request.body);
    Pipeline::parse(stages.as_raw(), &Scope::of(&find.context), &find.context)
}

pub(super) fn parse(request: &Request<'_>, call: &Call<'_>) -> Result<(Namespace, Find)> {
    let (mut query, mut skip, mut limit, mut hint, mut collation) = (RawDoc::EMPTY, 0, None, None, None);
    for field in request.fields("count") {
        match field.name() {
            "query" => query = field.doc()?.unwrap_or(RawDoc::EMPTY),
            "skip" => skip = field.count()?.unwrap_or(0),
            // A negative limit means the same as a positive one.
            "limit" => limit = parse_limit(field.value())?,
            "hint" => hint = parse::hint(field.value())?,
            "collation" => collation = parse::collation(&field)?,
            "fields" | "queryOptions" => {}
            _ => return Err(field.unknown()),
        }
    }
    let ns = request.namespace_of_name()?;
    let context = Arc::new(call.context_on(&ns, collation)?);
    let filter = parse::filter(query, &Scope::of(&context))?;
    let mut find = Find::new(filter, context);
    find.skip = skip;
    find.limit = limit;
    find.hint = hint;
    Ok((ns, find))
}

fn parse_limit(value: ValueRef<'_>) -> Result<Option<u64>> {
    match Number::of(value) {
        Some(limit) => Ok(Some(limit.to_i64_clamped().unsigned_abs()).filter(|limit| *limit > 0)),
        None if value.is_nullish() => Ok(None),
        None => Err(Error::bad_value("limit value is not a valid number")),
    }
}
