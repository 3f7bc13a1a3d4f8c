//! `dbStats`: the sizes and counts of a database.

use espalier_store::Namespace;
use espalier_value::number::Number;

use super::prelude::*;
use crate::views;

pub(super) static COMMAND: Command = Command {
    name: "dbStats",
    aliases: &["dbstats"],
    doc: "Returns the sizes and counts of a database.",
    privilege: Privilege::Database(&[Action::DbStats]),
    run: db_stats,
    ..Command::BASE
};

fn db_stats(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut scale = 1.0;
    // What it does not know it ignores, as MongoDB does here.
    for field in request.fields("dbStats").filter(|field| field.name() == "scale") {
        match Number::of(field.value()).map(Number::to_i64_clamped) {
            Some(n) if n > 0 => scale = n as f64,
            Some(_) => return Err(Error::new(Code::OK, "scale has to be > 0")),
            None if field.value().is_nullish() => {}
            None => return Err(Error::new(Code::OK, "scale has to be a number > 0")),
        }
    }
    let transaction = call.begin_plain()?;
    let (mut collections, mut objects, mut indexes, mut views) = (0u64, 0u64, 0u64, 0u64);
    let (mut data, mut storage, mut index_bytes) = (0u64, 0u64, 0u64);
    for collection in transaction.collections(request.db)? {
        if let Some(view) = &collection.options.view {
            // Its definition is what it has; the collection of definitions is in the list as well.
            views += 1;
            objects += 1;
            data += views::definition(request.db, &collection.name, view, &collection.options.collation)
                .as_bytes()
                .len() as u64;
            continue;
        }
        let stats = transaction.coll_stats(&Namespace::new(request.db, &collection.name))?;
        collections += 1;
        objects += stats.count;
        data += stats.size;
        storage += stats.storage_size;
        indexes += stats.index_sizes.len() as u64;
        index_bytes += stats.index_sizes.iter().map(|(_, size)| size).sum::<u64>();
    }
    let reply = &mut call.reply;
    reply.append("db", request.db).append_count("collections", collections).append_count("views", views);
    reply.append_count("objects", objects);
    if collections == 0 {
        for name in ["avgObjSize", "dataSize", "storageSize", "indexes", "indexSize", "totalSize"] {
            reply.append(name, 0);
        }
        reply.append_count("scaleFactor", scale as u64);
        return Ok(());
    }
    reply.append("avgObjSize", if objects == 0 { 0.0 } else { data as f64 / objects as f64 });
    reply.append("dataSize", data as f64 / scale).append("storageSize", storage as f64 / scale);
    reply.append_count("indexes", indexes).append("indexSize", index_bytes as f64 / scale);
    reply.append("totalSize", (storage + index_bytes) as f64 / scale).append("scaleFactor", scale);
    Ok(())
}
