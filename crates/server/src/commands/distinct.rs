//! `distinct`: the different values of a field among the documents that match.

use std::sync::Arc;

use espalier_store::{Find, Namespace};

use super::prelude::*;
use crate::cursors::BATCH_BYTES_MAX;
use crate::{fields, parse};

pub(super) static COMMAND: Command = Command {
    name: "distinct",
    doc: "Returns the different values of a field.",
    privilege: Privilege::Read,
    stable: true,
    reads: true,
    run: distinct,
    ..Command::BASE
};

fn distinct(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (ns, key, find) = parse(request, call)?;
    let transaction = call.begin(&find.context)?;
    let values = transaction.distinct(&ns, key, &find)?;
    let mut array = call.reply.array("values");
    for value in &values {
        array.push(value.or_null());
        if array.len_bytes() > BATCH_BYTES_MAX {
            let message = "distinct too big, 16mb cap";
            return Err(Error::new(Code(17217), message));
        }
    }
    Ok(())
}

pub(super) fn parse<'a>(request: &Request<'a>, call: &Call<'_>) -> Result<(Namespace, &'a str, Find)> {
    let (mut query, mut key) = (RawDoc::EMPTY, None);
    for field in request.fields("distinct") {
        match field.name() {
            "key" => key = field.str()?,
            "query" => query = field.doc()?.unwrap_or(RawDoc::EMPTY),
            "collation" => parse::collation(&field)?,
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
    let context = Arc::new(call.context());
    Ok((ns, key, Find::new(parse::filter(query, &Default::default())?, context)))
}
