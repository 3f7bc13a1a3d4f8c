//! `serverStatus`: what the server has done and is doing, in MongoDB's sections.

use std::sync::atomic::Ordering;

use super::build_info::MONGODB_VERSION;
use super::hello::member_address;
use super::prelude::*;
use crate::reply::DocWriter;
use crate::server::Server;

pub(super) static COMMAND: Command = Command {
    name: "serverStatus",
    doc: "Returns the server's counters and figures.",
    privilege: Privilege::Cluster(&[Action::ServerStatus]),
    run: server_status,
    ..Command::BASE
};

fn server_status(request: &Request<'_>, call: &mut Call<'_>) -> Result<()> {
    let wants = |name: &str| {
        let field = request.fields("serverStatus").find(|field| field.name() == name);
        field.is_none_or(|field| !matches!(field.bool_or_number(), Ok(Some(false))))
    };
    let server = call.server;
    let me = member_address(call);
    let now = call.now_ms;
    let uptime_ms = server.clock.uptime_ms();
    let reply = &mut call.reply;
    reply.append("host", &host_name(server)).append("version", MONGODB_VERSION).append("process", "espalier");
    reply.append("pid", i64::from(std::process::id()));
    reply.append("uptime", uptime_ms as f64 / 1000.0).append("uptimeMillis", uptime_ms);
    reply.append("uptimeEstimate", uptime_ms / 1000);
    reply.append_date("localTime", now);
    if wants("asserts") {
        let metrics = &server.metrics;
        let mut asserts = reply.doc("asserts");
        asserts.append("regular", 0).append("warning", 0);
        asserts.append_count("msg", metrics.internal_errors.get()).append_count("user", metrics.user_errors.get());
        asserts.append("tripwire", 0).append("rollovers", 0);
    }
    if wants("connections") {
        connections(server, reply);
    }
    if wants("globalLock") {
        let mut lock = reply.doc("globalLock");
        lock.append("totalTime", uptime_ms.saturating_mul(1000));
        lock.doc("currentQueue").append("total", 0).append("readers", 0).append("writers", 0);
        let active = server.clients.all().iter().filter(|client| client.operation().active).count() as i32;
        lock.doc("activeClients").append("total", active).append("readers", active).append("writers", 0);
    }
    if wants("logicalSessionRecordCache") {
        reply.doc("logicalSessionRecordCache").append_count("activeSessionsCount", server.sessions.len() as u64);
    }
    if wants("mem") {
        let (resident, virt) = memory_mb();
        let mut mem = reply.doc("mem");
        mem.append("bits", usize::BITS as i32).append_count("resident", resident).append_count("virtual", virt);
        mem.append("supported", true);
    }
    if wants("metrics") {
        metrics(server, &mut reply.doc("metrics"));
    }
    if wants("network") {
        let metrics = &server.metrics;
        let mut network = reply.doc("network");
        network.append_long("bytesIn", metrics.received()).append_long("bytesOut", metrics.sent());
        network.append_long("numRequests", metrics.requests.get());
    }
    if wants("opcounters") {
        op_counters(server, &mut reply.doc("opcounters"));
    }
    if wants("repl") {
        let mut repl = reply.doc("repl");
        repl.array("hosts").push(&me);
        repl.append("setName", &server.options.set_name).append("setVersion", 1);
        repl.append("isWritablePrimary", true).append("secondary", false);
        repl.append("primary", &me).append("me", &me);
        repl.append("electionId", ValueRef::ObjectId(super::ELECTION_ID.0));
    }
    if wants("storageEngine") {
        let mut engine = reply.doc("storageEngine");
        engine.append("name", "espalier").append("supportsCommittedReads", true);
        engine.append("supportsSnapshotReadConcern", false).append("readOnly", false).append("persistent", true);
    }
    if wants("espalier") {
        let status = server.store.status();
        let mut own = reply.doc("espalier");
        own.append("version", env!("CARGO_PKG_VERSION"));
        own.append_count("threads", server.threads() as u64);
        own.doc("store").append_fields(status.as_raw());
    }
    Ok(())
}

/// The name of this machine, and the port.
pub(super) fn host_name(server: &Server) -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() { "localhost" } else { name.trim() };
    format!("{name}:{}", server.local_addr().port())
}

fn connections(server: &Server, reply: &mut DocWriter<'_>) {
    let clients = server.clients.all();
    let active = clients.iter().filter(|client| client.operation().active).count() as u64;
    let current = clients.len() as u64;
    let max = server.options.limits.connections_max;
    let mut connections = reply.doc("connections");
    connections.append_count("current", current).append_count("available", max.saturating_sub(current));
    connections.append_count("totalCreated", server.metrics.connections_created.get());
    connections.append_count("rejected", server.metrics.connections_refused.get());
    connections.append_count("active", active).append_count("threaded", server.threads() as u64);
}

fn op_counters(server: &Server, counters: &mut DocWriter<'_>) {
    let metrics = &server.metrics;
    let known = metrics.inserts.get()
        + metrics.queries.get()
        + metrics.updates.get()
        + metrics.deletes.get()
        + metrics.get_mores.get();
    counters.append_long("insert", metrics.inserts.get()).append_long("query", metrics.queries.get());
    counters.append_long("update", metrics.updates.get()).append_long("delete", metrics.deletes.get());
    counters.append_long("getmore", metrics.get_mores.get());
    counters.append_long("command", metrics.requests.get().saturating_sub(known));
}

fn metrics(server: &Server, doc: &mut DocWriter<'_>) {
    let metrics = &server.metrics;
    {
        let mut commands = doc.doc("commands");
        for (command, (total, failed)) in super::known().zip(&metrics.by_command) {
            commands.doc(command.name).append_long("failed", failed.get()).append_long("total", total.get());
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
    let mut document = doc.doc("document");
    document.append_long("deleted", metrics.docs_deleted.get()).append_long("inserted", metrics.docs_inserted.get());
    document.append_long("returned", metrics.docs_returned.get()).append_long("updated", metrics.docs_updated.get());
    drop(document);
    let mut executor = doc.doc("queryExecutor");
    executor.append_long("scanned", metrics.keys_examined.get());
    executor.append_long("scannedObjects", metrics.docs_examined.get());
    drop(executor);
    doc.doc("ttl")
        .append_long("deletedDocuments", metrics.ttl_deleted.get())
        .append_long("passes", metrics.ttl_passes.get());
    let (open, inactive) = server.sessions.open_transactions();
    doc.doc("transactions")
        .append_long("retriedStatementsCount", metrics.retried_statements.get())
        .append_long("totalStarted", metrics.transactions_started.get())
        .append_long("totalCommitted", metrics.transactions_committed.get())
        .append_long("totalAborted", metrics.transactions_aborted.get())
        .append_long("currentOpen", open)
        .append_long("currentActive", open - inactive)
        .append_long("currentInactive", inactive);
}

/// Resident and virtual memory of this process, in MiB.
fn memory_mb() -> (u64, u64) {
    const PAGE_KIB: u64 = 4;
    let Ok(statm) = std::fs::read_to_string("/proc/self/statm") else { return (0, 0) };
    let mut pages = statm.split_whitespace().map(|n| n.parse::<u64>().unwrap_or(0));
    let virt = pages.next().unwrap_or(0) * PAGE_KIB / 1024;
    (pages.next().unwrap_or(0) * PAGE_KIB / 1024, virt)
}
