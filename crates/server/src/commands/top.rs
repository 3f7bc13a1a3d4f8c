//! `top`: how often and for how long each collection was read and written. A collection nobody used since the start shows
//! zeros.

use espalier_store::Namespace;

use super::prelude::*;
use crate::observe::Usage;
use crate::reply::DocWriter;

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
            let usage = call.server.top.get(&database.name, &collection.name).unwrap_or_default();
            write(&usage, &mut totals.doc(&ns));
        }
    }
    Ok(())
}

fn write(usage: &Usage, out: &mut DocWriter<'_>) {
    let mut part = |name: &str, micros: u64, count: u64| {
        out.doc(name).append_long("time", micros).append_long("count", count);
    };
    let (reads, writes, others) = (&usage.reads, &usage.writes, &usage.others);
    let micros = reads.micros.get() + writes.micros.get() + others.micros.get();
    part("total", micros, reads.ops.get() + writes.ops.get() + others.ops.get());
    part("readLock", reads.micros.get(), reads.ops.get());
    part("writeLock", writes.micros.get(), writes.ops.get());
    for (name, timed) in [
        ("queries", &usage.queries),
        ("getmore", &usage.get_more),
        ("insert", &usage.insert),
        ("update", &usage.update),
        ("remove", &usage.remove),
        ("commands", &usage.commands),
    ] {
        part(name, timed.micros.get(), timed.count.get());
    }
}
