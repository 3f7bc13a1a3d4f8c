//! `dbStats`: the sizes and counts of a database.

use espalier_store::Namespace;

use super::prelude::*;

pub(super) static COMMAND: Command = Command {
    name: "dbStats",
    aliases: &["dbstats"],
    doc: "Returns the sizes and counts of a database.",
    privilege: Privilege::Read,
    run: db_stats,
    ..Command::BASE
};

fn db_stats(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut scale = 1.0;
    for field in request.fields("dbStats") {
        match field.name() {
            "scale" => match field.long()? {
                None => {}
                Some(n) if n > 0 => scale = n as f64,
                Some(_) => return Err(Error::new(Code::OK, "scale has to be > 0")),
            },
            "freeStorage" => {
                field.bool_or_number()?;
            }
            _ => return Err(field.unknown()),
        }
    }
    let transaction = call.begin_plain()?;
    let (mut collections, mut objects, mut indexes) = (0u64, 0u64, 0u64);
    let (mut data, mut storage, mut index_bytes) = (0u64, 0u64, 0u64);
    for collection in transaction.collections(request.db)? {
        let stats = transaction.coll_stats(&Namespace::new(request.db, &collection.name))?;
        collections += 1;
        objects += stats.count;
        data += stats.size;
        storage += stats.storage_size;
        indexes += stats.index_sizes.len() as u64;
        index_bytes += stats.index_sizes.iter().map(|(_, size)| size).sum::<u64>();
    }
    let reply = &mut call.reply;
    reply.append("db", request.db).append_long("collections", collections).append("views", 0i64);
    reply.append_long("objects", objects);
    reply.append("avgObjSize", if objects == 0 { 0.0 } else { data as f64 / objects as f64 });
    reply.append("dataSize", data as f64 / scale).append("storageSize", storage as f64 / scale);
    reply.append_long("indexes", indexes).append("indexSize", index_bytes as f64 / scale);
    reply.append("totalSize", (storage + index_bytes) as f64 / scale).append("scaleFactor", scale);
    Ok(())
}
