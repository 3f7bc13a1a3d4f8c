//! `listDatabases`: the databases with their sizes.

use std::sync::Arc;

use super::prelude::*;
use crate::parse;
use crate::reply::build;

pub(super) static COMMAND: Command = Command {
    name: "listDatabases",
    doc: "Lists the databases.",
    privilege: Privilege::Read,
    place: Place::Admin,
    stable: true,
    run: list_databases,
    ..Command::BASE
};

fn list_databases(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut filter, mut name_only) = (RawDoc::EMPTY, false);
    for field in request.fields("listDatabases") {
        match field.name() {
            "filter" => filter = field.doc()?.unwrap_or(RawDoc::EMPTY),
            "nameOnly" => name_only = field.bool_or_number()?.unwrap_or(false),
            "authorizedDatabases" => {
                field.bool_or_number()?;
            }
            _ => return Err(field.unknown()),
        }
    }
    let context = Arc::new(call.context());
    let filter = parse::filter(filter, &Default::default())?;
    let transaction = call.begin(&context)?;
    let mut databases = transaction.databases()?;
    databases.sort_by(|a, b| a.name.cmp(&b.name));
    let mut total = 0;
    {
        let mut list = call.reply.array("databases");
        for database in &databases {
            let doc = build(|doc| {
                doc.append("name", &database.name);
                if !name_only {
                    doc.append_long("sizeOnDisk", database.size_on_disk).append("empty", database.empty);
                }
            });
            if filter.matches(doc.as_raw(), &context)? {
                list.push(&doc);
                total += database.size_on_disk;
            }
        }
    }
    if !name_only {
        call.reply.append_long("totalSize", total).append_long("totalSizeMb", total / 1_000_000);
    }
    Ok(())
}
