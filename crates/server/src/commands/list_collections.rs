//! `listCollections`: the collections of a database with their options.

use std::sync::Arc;

use espalier_query::stream::Buffered;
use espalier_store::{CollectionInfo, Namespace};
use espalier_value::DocBuf;

use super::asked::asks_for;
use super::prelude::*;
use crate::cursors::{First, OpenCursor, Source, write_first};
use crate::fields::{Field, fields};
use crate::parse;
use crate::reply::build;

pub(super) static COMMAND: Command = Command {
    name: "listCollections",
    doc: "Lists the collections of a database.",
    privilege: Privilege::Asked {
        doc: "`listCollections` on the database, or any privilege in it with `nameOnly` and `authorizedCollections`",
        may,
    },
    stable: true,
    run: list_collections,
    ..Command::BASE
};

fn may(request: &Request<'_>, rights: &Rights) -> bool {
    rights.on_database(request.db, Action::ListCollections)
        || asks_for(request, "nameOnly") && asks_for(request, "authorizedCollections") && rights.in_database(request.db)
}

fn list_collections(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut filter, mut name_only, mut batch_size) = (RawDoc::EMPTY, false, None);
    let mut authorized = false;
    for field in request.fields("listCollections") {
        match field.name() {
            "filter" => filter = field.doc()?.unwrap_or(RawDoc::EMPTY),
            "nameOnly" => name_only = field.bool_or_number()?.unwrap_or(false),
            "authorizedCollections" => authorized = field.bool_or_number()?.unwrap_or(false),
            "cursor" => batch_size = parse_cursor(&field)?,
            _ => return Err(field.unknown()),
        }
    }
    let context = Arc::new(call.context());
    let filter = parse::filter(filter, &Default::default())?;
    let transaction = call.begin(&context)?;
    let mut listed = Vec::new();
    for collection in transaction.collections(request.db)? {
        if authorized && name_only && !call.rights.in_namespace(request.db, &collection.name) {
            continue;
        }
        let doc = describe(&collection, name_only);
        if filter.matches(doc.as_raw(), &context)? {
            listed.push(doc);
        }
    }
    let ns = Namespace::new(request.db, "$cmd.listCollections");
    write_list(call, ns, listed, batch_size)
}

fn describe(collection: &CollectionInfo, name_only: bool) -> DocBuf {
    build(|doc| {
        let is_view = collection.options.view.is_some();
        doc.append("name", &collection.name).append("type", if is_view { "view" } else { "collection" });
        if name_only {
            return;
        }
        if is_view {
            doc.append("options", &collection.options.listed);
            doc.doc("info").append("readOnly", true);
            return;
        }
        doc.append("options", &collection.options.listed);
        doc.doc("info").append("readOnly", false).append("uuid", ValueRef::Binary(4, &collection.uuid));
        let mut index = doc.doc("idIndex");
        index.append("v", 2);
        index.doc("key").append("_id", 1);
        index.append("name", "_id_");
        if let Some(collation) = &collection.options.collation {
            index.append("collation", &collation.listed());
        }
    })
}

/// Answers with documents that are all in memory.
pub(super) fn write_list(call: &mut Call<'_>, ns: Namespace, docs: Vec<DocBuf>, batch_size: Option<u64>) -> Result<()> {
    let context = Arc::new(call.context());
    // All of it goes into one reply if the client does not say otherwise and it fits.
    let size = batch_size.unwrap_or(u64::MAX);
    let left = docs.len() as u64;
    let mut cursor = Box::new(OpenCursor::new(ns, context, Source::Pipeline(Box::new(Buffered::new(docs)))));
    cursor.session = call.lsid;
    cursor.left = Some(left);
    let name = cursor.ns.to_string();
    write_first(call, cursor, &name, First { batch_size: Some(size), id_first: true, ..First::default() })
}

/// The `cursor` option: `{batchSize: n}`.
pub(super) fn parse_cursor(field: &Field<'_, '_>) -> Result<Option<u64>> {
    let Some(doc) = field.doc()? else { return Ok(None) };
    let path = field.path();
    let mut size = None;
    for field in fields(doc, &path)? {
        match field.name() {
            "batchSize" => size = field.count()?,
            _ => return Err(field.unknown()),
        }
    }
    Ok(size)
}
