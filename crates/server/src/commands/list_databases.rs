//! `listDatabases`: the databases with their sizes.

use std::sync::Arc;

use super::asked::asks_for;
use super::prelude::*;
use crate::parse;
use crate::reply::build;

pub(super) static COMMAND: Command = Command {
    name: "listDatabases",
    doc: "Lists the databases.",
    privilege: Privilege::Asked {
        doc: "any user; without `listDatabases` on the cluster only databases it has a privilege in",
        may,
    },
    place: Place::Admin,
    stable: true,
    run: list_databases,
    ..Command::BASE
};

/// The list is cut to what the client may see, unless it insists on all of it.
fn may(request: &Request<'_>, rights: &Rights) -> bool {
    let all = request.body.get("authorizedDatabases").is_some() && !asks_for(request, "authorizedDatabases");
    rights.on_cluster(Action::ListDatabases) || !all
}

fn list_databases(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let (mut filter, mut name_only, mut authorized) = (RawDoc::EMPTY, false, None);
    for field in request.fields("listDatabases") {
        match field.name() {
            "filter" => filter = field.doc()?.unwrap_or(RawDoc::EMPTY),
            "nameOnly" => name_only = field.bool_or_number()?.unwrap_or(false),
            "authorizedDatabases" => authorized = field.bool_or_number()?,
            _ => return Err(field.unknown()),
        }
    }
    let context = Arc::new(call.context());
    let filter = parse::filter(filter, &Default::default())?;
    let transaction = call.begin(&context)?;
    let mut databases = transaction.databases()?;
    // Who may list all of them sees all, unless it asks for its own.
    let rights = call.rights.clone();
    if authorized.unwrap_or(!rights.on_cluster(Action::ListDatabases)) {
        databases.retain(|database| rights.in_database(&database.name));
    }
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
