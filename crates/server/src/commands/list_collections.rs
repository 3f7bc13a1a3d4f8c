//! `listCollections`: the collections of a database with their options.

use std::sync::Arc;

use espalier_query::stream::Buffered;
use espalier_query::{Context, Filter, Stream};
use espalier_store::{CollectionInfo, Find, Namespace, Transaction};
use espalier_value::{DocBuf, doc};

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
    let mut names = logical_names(&*transaction, request.db, &filter, &context)?;
    if !names.advance()? {
        return write_list(call, ns, listed, batch_size);
    }
    let rights = (authorized && name_only).then(|| call.rights.clone());
    let parts = Parts { names, at_first: true, name_only, rights, db: request.db.into(), filter, context, shown: None };
    let listing = Listing { collections: Buffered::new(listed), parts, in_parts: false };
    let mut cursor = Box::new(OpenCursor::new(ns, Arc::new(call.context()), Source::Pipeline(Box::new(listing))));
    cursor.session = call.lsid;
    let name = cursor.ns.to_string();
    let size = Some(batch_size.unwrap_or(u64::MAX));
    write_first(call, cursor, &name, First { batch_size: size, id_first: true, ..First::default() })
}

/// The names that stand for parts of collections; only the one that the filter asks for, if it names one.
fn logical_names(
    transaction: &dyn Transaction,
    db: &str,
    filter: &Filter,
    context: &Arc<Context>,
) -> Result<Box<dyn Stream>> {
    let equalities = filter.equalities().unwrap_or_default();
    let named = equalities.iter().find(|(path, _)| path.as_str() == "name").map(|(_, name)| *name);
    let Some(named) = named else { return transaction.logical_names(db, context) };
    let ns = Namespace::new(db, named.as_str().unwrap_or_default());
    let layer = transaction.layer(&ns)?;
    let Some(into) = layer.as_ref().and_then(|layer| layer.answers_for(ns.collection())) else {
        return Ok(Box::new(Buffered::new(Vec::new())));
    };
    let mut any = Find::new(Arc::new(Filter::empty()), Arc::clone(context));
    any.limit = Some(1);
    let found = match transaction.count(&ns, &any)? {
        0 => Vec::new(),
        _ => vec![doc! { "name": ns.collection(), "collection": into, "pattern": "shared" }],
    };
    Ok(Box::new(Buffered::new(found)))
}

/// The collections, and then the names that stand for parts of them, which are made as they are read.
struct Listing {
    collections: Buffered,
    parts: Parts,
    in_parts: bool,
}

impl Stream for Listing {
    fn advance(&mut self) -> Result<bool> {
        if !self.in_parts && self.collections.advance()? {
            return Ok(true);
        }
        self.in_parts = true;
        self.parts.advance()
    }

    fn doc(&self) -> RawDoc<'_> {
        if self.in_parts { self.parts.doc() } else { self.collections.doc() }
    }
}

struct Parts {
    names: Box<dyn Stream>,
    /// The first name has been read already.
    at_first: bool,
    name_only: bool,
    /// Only names that these allow to see.
    rights: Option<Rights>,
    db: Box<str>,
    filter: Arc<Filter>,
    context: Arc<Context>,
    shown: Option<DocBuf>,
}

impl Stream for Parts {
    fn advance(&mut self) -> Result<bool> {
        while std::mem::take(&mut self.at_first) || self.names.advance()? {
            let part = self.names.doc();
            let name = part.get_str("name").unwrap_or_default();
            if self.rights.as_ref().is_some_and(|rights| !rights.in_namespace(&self.db, name)) {
                continue;
            }
            let doc = describe_part(part, name, self.name_only);
            if self.filter.matches(doc.as_raw(), &self.context)? {
                self.shown = Some(doc);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.shown.as_ref().map_or(RawDoc::EMPTY, DocBuf::as_raw)
    }
}

/// A collection as far as clients can tell; its options say what it is a part of.
fn describe_part(part: RawDoc<'_>, name: &str, name_only: bool) -> DocBuf {
    build(|doc| {
        doc.append("name", name).append("type", "collection");
        if name_only {
            return;
        }
        let mut options = doc.doc("options");
        let mut owner = options.doc("patternOwner");
        part.iter().filter(|elem| elem.name() != "name").for_each(|elem| {
            owner.append(elem.name(), elem.value());
        });
        drop(owner);
        drop(options);
        doc.doc("info").append("readOnly", false);
        let mut index = doc.doc("idIndex");
        index.append("v", 2);
        index.doc("key").append("_id", 1);
        index.append("name", "_id_");
    })
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
