//! `serverStatus`: what the server has done and is doing, in MongoDB's sections. Every figure is counted or measured;
//! what Espalier has no counterpart of (locks, a journal of its own, WiredTiger) is left out.

use std::sync::atomic::Ordering;

use super::build_info::MONGODB_VERSION;
use super::hello::member_address;
use super::prelude::*;
use crate::metrics::memory;
use crate::observe::Class;
use crate::reply::DocWriter;
use crate::server::Server;

pub(super) static COMMAND: Command = Command {
    name: "serverStatus",
    doc: "Returns the server's counters and figures.",
    privilege: Privilege::Cluster(&[Action::ServerStatus]),
    run: server_status,
    ..Command::BASE
};

/// Writes one section.
type Write = fn(&Call<'_>, &mut DocWriter<'_>);

/// Whether a section is wanted, and whether with histograms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    No,
    Yes,
    WithHistograms,
}

/// The sections, in the order of their names.
static SECTIONS: &[(&str, Write)] = &[
    ("asserts", asserts),
    ("connections", connections),
    ("espalier", espalier),
    ("extra_info", extra_info),
    ("globalLock", global_lock),
    ("locks", locks),
    ("logicalSessionRecordCache", sessions),
    ("mem", mem),
    ("metrics", metrics),
    ("network", network),
    ("opLatencies", op_latencies),
    ("opcounters", op_counters),
    ("opcountersRepl", op_counters_repl),
    ("repl", repl),
    ("storageEngine", storage_engine),
    ("transactions", transactions),
];

fn server_status(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    // Which sections to leave out. As in MongoDB, a name that is none is no error: it may be one of another version.
    let wanted = |name: &str| match request.fields("serverStatus").find(|field| field.name() == name) {
        Some(field) => match field.value() {
            ValueRef::Document(options) => match options.get("histograms") {
                Some(ValueRef::Bool(true)) => Wanted::WithHistograms,
                _ => Wanted::Yes,
            },
            _ if matches!(field.bool_or_number(), Ok(Some(false))) => Wanted::No,
            _ => Wanted::Yes,
        },
        None => Wanted::Yes,
    };
    let status = crate::reply::build(|doc| write(call, doc, wanted));
    call.reply.append_fields(status.as_raw());
    Ok(())
}

/// Everything.
pub(super) fn write_all(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    write(call, doc, |_| Wanted::Yes);
}

/// Everything, but for the sections that are not wanted.
fn write(call: &Call<'_>, doc: &mut DocWriter<'_>, wanted: impl Fn(&str) -> Wanted) {
    let server = call.server;
    let uptime_ms = server.clock.uptime_ms();
    doc.append("host", &host_name(server)).append("version", MONGODB_VERSION).append("process", "espalier");
    doc.append("pid", i64::from(std::process::id()));
    doc.append("uptime", uptime_ms as f64 / 1000.0).append("uptimeMillis", uptime_ms);
    doc.append("uptimeEstimate", uptime_ms / 1000);
    doc.append_date("localTime", call.now_ms);
    for (name, section) in SECTIONS {
        match wanted(name) {
            Wanted::No => {}
            Wanted::WithHistograms if *name == "opLatencies" => write_latencies(call, &mut doc.doc(name), true),
            Wanted::Yes | Wanted::WithHistograms => section(call, &mut doc.doc(name)),
        }
    }
}

/// The name of this machine, and the port.
pub(super) fn host_name(server: &Server) -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() { "localhost" } else { name.trim() };
    format!("{name}:{}", server.local_addr().port())
}

fn asserts(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    let metrics = &call.server.metrics;
    // A bug shows as one that the server would not have raised itself.
    doc.append("regular", 0).append("warning", 0);
    doc.append_count("msg", metrics.internal_errors.get()).append_count("user", metrics.user_errors.get());
    doc.append("tripwire", 0).append("rollovers", 0);
}

fn connections(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    let server = call.server;
    let clients = server.clients.all();
    let (mut active, mut waiting) = (0, 0);
    for client in &clients {
        let operation = client.operation();
        active += u64::from(operation.active);
        waiting += u64::from(operation.active && operation.waits_for.is_some());
    }
    let current = clients.len() as u64;
    let max = server.options.limits.connections_max;
    doc.append_count("current", current).append_count("available", max.saturating_sub(current));
    doc.append_count("totalCreated", server.metrics.connections_created.get());
    doc.append_count("rejected", server.metrics.connections_refused.get());
    doc.append_count("active", active).append_count("threaded", server.threads() as u64);
    doc.append_count("waiting", waiting);
}

fn espalier(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    let server = call.server;
    doc.append("version", env!("CARGO_PKG_VERSION"));
    doc.append_count("threads", server.threads() as u64);
    doc.append_count("groupedConnections", server.grouped() as u64);
    doc.doc("inFlight")
        .append_long("requestBytes", server.budget.used())
        .append_long("replyBytes", server.replies.used());
    doc.doc("store").append_fields(server.store.status().as_raw());
}

/// What the system says about this process.
fn extra_info(_: &Call<'_>, doc: &mut DocWriter<'_>) {
    doc.append("note", "fields vary by platform");
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return };
    // Behind the name, which may hold anything: state is the first field, and so on as in proc(5) from field 3.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    const TICK_MICROS: u64 = 10_000;
    doc.append_long("user_time_us", field(14) * TICK_MICROS).append_long("system_time_us", field(15) * TICK_MICROS);
    doc.append_long("page_faults", field(12)).append_long("page_reclaims", field(10));
    doc.append_long("threads", field(20));
}

fn global_lock(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    let (mut readers, mut writers) = ((0, 0), (0, 0));
    for client in call.server.clients.all() {
        let operation = client.operation();
        if !operation.active {
            continue;
        }
        let name = operation.command().first().map_or("", |elem| elem.name());
        let (active, waiting) = match crate::observe::Kind::of(name).class() {
            Class::Writes => (&mut writers.0, &mut writers.1),
            Class::Reads | Class::Commands => (&mut readers.0, &mut readers.1),
        };
        *active += 1;
        *waiting += i32::from(operation.waits_for.is_some());
    }
    doc.append("totalTime", call.server.clock.uptime_ms().saturating_mul(1000));
    let mut write = |name: &str, readers: i32, writers: i32| {
        doc.doc(name).append("total", readers + writers).append("readers", readers).append("writers", writers);
    };
    write("currentQueue", readers.1, writers.1);
    write("activeClients", readers.0, writers.0);
}

/// There are no locks on databases or collections to count.
fn locks(_: &Call<'_>, _: &mut DocWriter<'_>) {}

fn sessions(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    doc.append_count("activeSessionsCount", call.server.sessions.len() as u64);
}

fn mem(_: &Call<'_>, doc: &mut DocWriter<'_>) {
    const MIB: u64 = 1024 * 1024;
    let memory = memory();
    doc.append("bits", usize::BITS as i32).append_count("resident", memory.resident_bytes / MIB);
    doc.append_count("virtual", memory.virtual_bytes / MIB).append("supported", true);
}

fn network(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    let metrics = &call.server.metrics;
    doc.append_long("bytesIn", metrics.received() + metrics.saved_in.get());
    doc.append_long("bytesOut", metrics.sent() + metrics.saved_out.get());
    doc.append_long("physicalBytesIn", metrics.received()).append_long("physicalBytesOut", metrics.sent());
    doc.append_long("numRequests", metrics.requests.get());
}

fn op_latencies(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    write_latencies(call, doc, false);
}

fn write_latencies(call: &Call<'_>, doc: &mut DocWriter<'_>, histograms: bool) {
    for (name, latency) in call.server.metrics.latencies() {
        let mut class = doc.doc(name);
        if histograms {
            let mut buckets = class.array("histogram");
            // As in MongoDB by lower bounds, and only what there is something in.
            let mut from = 0;
            for (to, count) in latency.histogram.counts() {
                if count > 0 {
                    buckets.push_doc().append_long("micros", from).append_long("count", count);
                }
                from = to.unwrap_or(from);
            }
        }
        class.append_long("latency", latency.micros.get()).append_long("ops", latency.ops.get());
    }
}

/// The commands that have a counter of their own in `opcounters`.
const COUNTED: [&str; 6] = ["aggregate", "delete", "find", "getMore", "insert", "update"];

fn op_counters(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    let metrics = &call.server.metrics;
    let others = super::known().zip(&metrics.by_command).filter(|(command, _)| !COUNTED.contains(&command.name));
    doc.append_long("insert", metrics.inserts.get()).append_long("query", metrics.queries.get());
    doc.append_long("update", metrics.updates.get()).append_long("delete", metrics.deletes.get());
    doc.append_long("getmore", metrics.get_mores.get());
    doc.append_long("command", others.map(|(_, counts)| counts.total.get()).sum());
}

/// Nothing is replicated to this server: these stay zero because it is so.
fn op_counters_repl(_: &Call<'_>, doc: &mut DocWriter<'_>) {
    for name in ["insert", "query", "update", "delete", "getmore", "command"] {
        doc.append(name, 0i64);
    }
}

fn repl(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    let me = member_address(call);
    doc.array("hosts").push(&me);
    doc.append("setName", &call.server.options.set_name).append("setVersion", 1);
    doc.append("isWritablePrimary", true).append("secondary", false);
    doc.append("primary", &me).append("me", &me);
    doc.append("electionId", ValueRef::ObjectId(super::ELECTION_ID.0));
}

fn storage_engine(_: &Call<'_>, doc: &mut DocWriter<'_>) {
    doc.append("name", "espalier").append("supportsCommittedReads", true);
    doc.append("supportsSnapshotReadConcern", true).append("readOnly", false).append("persistent", true);
}

fn transactions(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    let metrics = &call.server.metrics;
    let (open, inactive) = call.server.sessions.open_transactions();
    doc.append_long("retriedCommandsCount", metrics.retried_commands.get());
    doc.append_long("retriedStatementsCount", metrics.retried_statements.get());
    doc.append_long("currentActive", open.saturating_sub(inactive)).append_long("currentInactive", inactive);
    doc.append_long("currentOpen", open);
    doc.append_long("totalStarted", metrics.transactions_started.get());
    doc.append_long("totalCommitted", metrics.transactions_committed.get());
    doc.append_long("totalAborted", metrics.transactions_aborted.get());
}

fn metrics(call: &Call<'_>, doc: &mut DocWriter<'_>) {
    let server = call.server;
    let metrics = &server.metrics;
    {
        let mut commands = doc.doc("commands");
        for (command, counts) in super::known().zip(&metrics.by_command) {
            let mut entry = commands.doc(command.name);
            entry.append_long("failed", counts.failed.get()).append_long("total", counts.total.get());
        }
    }
    {
        let counts = server.cursors.counts();
        let mut cursor = doc.doc("cursor");
        cursor.append_long("timedOut", server.cursors.timed_out.load(Ordering::Relaxed));
        cursor.append_long("totalOpened", server.cursors.opened.load(Ordering::Relaxed));
        let mut open = cursor.doc("open");
        open.append_long("noTimeout", counts.no_timeout).append_long("pinned", counts.pinned);
        open.append_long("total", counts.open);
    }
    doc.doc("document")
        .append_long("deleted", metrics.docs_deleted.get())
        .append_long("inserted", metrics.docs_inserted.get())
        .append_long("returned", metrics.docs_returned.get())
        .append_long("updated", metrics.docs_updated.get());
    doc.doc("operation")
        .append_long("scanAndOrder", metrics.sorts.get())
        .append_long("writeConflicts", metrics.write_conflicts.get());
    doc.doc("queryExecutor")
        .append_long("scanned", metrics.keys_examined.get())
        .append_long("scannedObjects", metrics.docs_examined.get())
        .doc("collectionScans")
        .append_long("total", metrics.collection_scans.get());
    doc.doc("ttl")
        .append_long("deletedDocuments", metrics.ttl_deleted.get())
        .append_long("passes", metrics.ttl_passes.get());
}
