//! `collStats`: the sizes and counts of a collection.

use espalier_store::{CollStats, Namespace};

use super::create::at_least_one;
use super::prelude::*;
use crate::reply::DocWriter;

pub(super) static COMMAND: Command = Command {
    name: "collStats",
    aliases: &["collstats"],
    doc: "Returns the sizes and counts of a collection.",
    privilege: Privilege::Collection(&[Action::CollStats]),
    run: coll_stats,
    ..Command::BASE
};

fn coll_stats(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let mut scale = 1;
    for field in request.fields("collStats") {
        if field.name() == "scale" {
            scale = at_least_one(&field)?.unwrap_or(1);
        }
    }
    let ns: Namespace = request.namespace_of_name()?;
    let transaction = call.begin_plain()?;
    let exists = transaction.collection(&ns)?.is_some();
    call.reply.append("ns", &ns.to_string());
    if !exists {
        let reply = &mut call.reply;
        for name in ["size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
            reply.append(name, 0);
        }
        reply.doc("indexDetails");
        reply.doc("indexSizes");
        reply.append_count("scaleFactor", scale);
        return Ok(());
    }
    let stats = transaction.coll_stats(&ns)?;
    write(&stats, scale, &mut call.reply);
    Ok(())
}

/// The figures, sizes divided by `scale`.
pub(super) fn write(stats: &CollStats, scale: u64, doc: &mut DocWriter<'_>) {
    doc.append_count("size", stats.size / scale).append_count("count", stats.count);
    if let Some(average) = stats.size.checked_div(stats.count) {
        doc.append_count("avgObjSize", average);
    }
    doc.append("numOrphanDocs", 0).append_count("storageSize", stats.storage_size / scale);
    doc.append("freeStorageSize", 0).append("capped", stats.capped.is_some());
    if let Some(capped) = stats.capped {
        doc.append_count("max", capped.max_documents).append_count("maxSize", capped.size_bytes / scale);
    }
    if let Some(patterns) = &stats.patterns {
        doc.append("patterns", patterns);
    }
    let index_bytes: u64 = stats.index_sizes.iter().map(|(_, size)| size).sum();
    doc.append_count("nindexes", stats.index_sizes.len() as u64);
    {
        let mut builds = doc.array("indexBuilds");
        stats.index_builds.iter().for_each(|name| {
            builds.push(name);
        });
    }
    doc.append_count("totalIndexSize", index_bytes / scale);
    doc.append_count("totalSize", (stats.storage_size + index_bytes) / scale);
    {
        let mut sizes = doc.doc("indexSizes");
        stats.index_sizes.iter().for_each(|(name, size)| {
            sizes.append_count(name, size / scale);
        });
    }
    doc.append_count("scaleFactor", scale);
}
