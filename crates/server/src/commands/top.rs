//! `top`: usage by collection. Espalier counts no times by collection yet, so every figure is zero, in MongoDB's shape.

use espalier_store::Namespace;

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "top",
    doc: "Returns the usage of each collection.",
    privilege: Privilege::Cluster(&[Action::Top]),
    place: Place::Admin,
    run: top,
    ..Command::BASE
};

fn top(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    request.no_fields("top")?;
    let transaction = call.begin_plain()?;
    let mut totals = call.reply.doc("totals");
    totals.append("note", "all times in microseconds");
    for database in transaction.databases()? {
        for collection in transaction.collections(&database.name)? {
            let ns = Namespace::new(&database.name, &collection.name).to_string();
            let mut usage = totals.doc(&ns);
            for kind in
                ["total", "readLock", "writeLock", "queries", "getmore", "insert", "update", "remove", "commands"]
            {
                usage.doc(kind).append("time", 0i64).append("count", 0i64);
            }
        }
    }
    Ok(())
}
