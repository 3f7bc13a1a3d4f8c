//! The metrics page in Prometheus' text format. Every name is explained in docs/observability.md; a test compares.

use std::fmt::{Display, Write};

use espalier_value::number::Number;
use espalier_value::{RawDoc, ValueRef};

use super::Latency;
use crate::commands;
use crate::server::Server;

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

struct Page(String);

impl Page {
    fn describe(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (i, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{text}\"", if i == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.describe(name, "counter", help);
        self.sample(name, &[], value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.describe(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn labelled(&mut self, name: &str, kind: &str, help: &str, label: &str, values: &[(&str, u64)]) {
        self.describe(name, kind, help);
        for (text, value) in values {
            self.sample(name, &[(label, text)], value);
        }
    }
}

pub(super) fn page(server: &Server) -> String {
    let mut page = Page(String::with_capacity(16 * 1024));
    process(server, &mut page);
    network(server, &mut page);
    work(server, &mut page);
    latency(server, &mut page);
    cursors_and_sessions(server, &mut page);
    store(server, &mut page);
    page.0
}

fn process(server: &Server, page: &mut Page) {
    page.describe("espalier_info", "gauge", "The version of the server.");
    page.sample("espalier_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let uptime = server.clock.uptime_ms() as f64 / 1000.0;
    page.gauge("espalier_uptime_seconds", "How long the server has been running.", uptime);
    let memory = crate::metrics::memory();
    page.gauge("espalier_memory_resident_bytes", "Memory of the process that is in RAM.", memory.resident_bytes);
    page.gauge("espalier_memory_virtual_bytes", "Address space of the process.", memory.virtual_bytes);
    page.gauge("espalier_threads", "Threads that execute commands.", server.threads());
}

fn network(server: &Server, page: &mut Page) {
    let metrics = &server.metrics;
    page.gauge("espalier_connections", "Open client connections.", server.clients.len());
    let grouped = server.grouped();
    page.gauge("espalier_connections_grouped", "Active connections that share threads: there are many.", grouped);
    let max = server.options.limits.connections_max;
    page.gauge("espalier_connections_max", "Client connections that may be open at once.", max);
    let created = metrics.connections_created.get();
    page.counter("espalier_connections_created_total", "Client connections accepted.", created);
    let refused = metrics.connections_refused.get();
    page.counter("espalier_connections_refused_total", "Client connections refused: too many were open.", refused);
    page.counter("espalier_network_received_bytes_total", "Bytes received from clients.", metrics.received());
    page.counter("espalier_network_sent_bytes_total", "Bytes sent to clients.", metrics.sent());
    page.counter("espalier_requests_total", "Requests received.", metrics.requests.get());
    let in_flight = [("request", server.budget.used()), ("reply", server.replies.used())];
    let help = "Memory of large requests and replies that are under way.";
    page.labelled("espalier_in_flight_bytes", "gauge", help, "direction", &in_flight);
}

fn work(server: &Server, page: &mut Page) {
    let metrics = &server.metrics;
    let used: Vec<_> =
        commands::known().zip(&metrics.by_command).filter(|(_, counts)| counts.total.get() > 0).collect();
    page.describe("espalier_commands_total", "counter", "Commands executed, by name.");
    for (command, counts) in &used {
        page.sample("espalier_commands_total", &[("command", command.name)], counts.total.get());
    }
    page.describe("espalier_commands_failed_total", "counter", "Commands that failed, by name.");
    for (command, counts) in &used {
        page.sample("espalier_commands_failed_total", &[("command", command.name)], counts.failed.get());
    }
    page.describe("espalier_command_seconds_total", "counter", "Time spent executing commands, by name.");
    for (command, counts) in &used {
        let seconds = counts.micros.get() as f64 / 1e6;
        page.sample("espalier_command_seconds_total", &[("command", command.name)], seconds);
    }
    let errors = [("user", metrics.user_errors.get()), ("internal", metrics.internal_errors.get())];
    let help = "Errors given to clients; internal ones are bugs.";
    page.labelled("espalier_errors_total", "counter", help, "kind", &errors);
    let documents = [
        ("inserted", metrics.docs_inserted.get()),
        ("updated", metrics.docs_updated.get()),
        ("deleted", metrics.docs_deleted.get()),
        ("returned", metrics.docs_returned.get()),
    ];
    let help = "Documents written and returned.";
    page.labelled("espalier_documents_total", "counter", help, "what", &documents);
    let keys = metrics.keys_examined.get();
    page.counter("espalier_keys_examined_total", "Index entries examined.", keys);
    let docs = metrics.docs_examined.get();
    page.counter("espalier_documents_examined_total", "Documents examined.", docs);
    let help = "Commands that read a whole collection.";
    page.counter("espalier_collection_scans_total", help, metrics.collection_scans.get());
    let help = "Commands that had to sort documents in memory or on disk.";
    page.counter("espalier_sorts_total", help, metrics.sorts.get());
    let help = "Documents removed because a TTL index let them expire.";
    page.counter("espalier_ttl_deleted_documents_total", help, metrics.ttl_deleted.get());
    page.counter("espalier_ttl_passes_total", "Rounds through all TTL indexes.", metrics.ttl_passes.get());
}

fn latency(server: &Server, page: &mut Page) {
    const NAME: &str = "espalier_operation_seconds";
    page.describe(NAME, "histogram", "How long commands took, without the time they waited for documents to come.");
    for (class, latency) in server.metrics.latencies() {
        histogram(page, NAME, class, latency);
    }
}

fn histogram(page: &mut Page, name: &str, class: &str, latency: &Latency) {
    let bucket = format!("{name}_bucket");
    let mut total = 0;
    for (bound, count) in latency.histogram.counts() {
        total += count;
        let bound = bound.map_or("+Inf".to_string(), |micros| (micros as f64 / 1e6).to_string());
        page.sample(&bucket, &[("class", class), ("le", &bound)], total);
    }
    page.sample(&format!("{name}_sum"), &[("class", class)], latency.micros.get() as f64 / 1e6);
    // The same reading as the last bucket, which a scraper may insist on.
    page.sample(&format!("{name}_count"), &[("class", class)], total);
}

fn cursors_and_sessions(server: &Server, page: &mut Page) {
    let metrics = &server.metrics;
    let counts = server.cursors.counts();
    page.gauge("espalier_cursors", "Open cursors.", counts.open);
    page.gauge("espalier_cursors_pinned", "Open cursors that a command is reading from.", counts.pinned);
    let opened = server.cursors.opened.load(std::sync::atomic::Ordering::Relaxed);
    page.counter("espalier_cursors_opened_total", "Cursors opened.", opened);
    let timed_out = server.cursors.timed_out.load(std::sync::atomic::Ordering::Relaxed);
    page.counter("espalier_cursors_timed_out_total", "Cursors closed because nobody used them.", timed_out);
    let help = "Cursors that wait for documents to come: change streams and tailable ones.";
    page.gauge("espalier_cursors_waiting", help, server.notifier.waiting());
    page.gauge("espalier_sessions", "Logical sessions.", server.sessions.len());
    let (open, inactive) = server.sessions.open_transactions();
    let states = [("active", open.saturating_sub(inactive)), ("inactive", inactive)];
    page.labelled("espalier_transactions", "gauge", "Open transactions.", "state", &states);
    let ends = [
        ("started", metrics.transactions_started.get()),
        ("committed", metrics.transactions_committed.get()),
        ("aborted", metrics.transactions_aborted.get()),
    ];
    page.labelled("espalier_transactions_total", "counter", "Transactions begun and ended.", "what", &ends);
    let help = "Commands that ended because somebody else had written first.";
    page.counter("espalier_write_conflicts_total", help, metrics.write_conflicts.get());
    let help = "Statements of retryable writes that had been carried out before.";
    page.counter("espalier_retried_statements_total", help, metrics.retried_statements.get());
}

/// What the store counts: its name there, its name here, whether it only grows, what it is.
const STORE: &[(&str, &str, &str, &str)] = &[
    ("memtableBytes", "espalier_store_memtable_bytes", "gauge", "Recent writes held in memory."),
    (
        "frozenMemtableBytes",
        "espalier_store_frozen_memtable_bytes",
        "gauge",
        "Writes in memory that wait to be flushed.",
    ),
    ("diskBytes", "espalier_store_disk_bytes", "gauge", "Bytes of sorted runs on disk."),
    ("runMemoryBytes", "espalier_store_run_memory_bytes", "gauge", "Memory of the indexes and filters of runs."),
    ("cacheBytes", "espalier_store_cache_bytes", "gauge", "Memory of the block cache."),
    ("cacheHits", "espalier_store_cache_hits_total", "counter", "Blocks found in the cache."),
    ("cacheMisses", "espalier_store_cache_misses_total", "counter", "Blocks read from disk."),
    ("commits", "espalier_store_commits_total", "counter", "Commits since the data folder was made."),
    ("logSyncs", "espalier_store_log_syncs_total", "counter", "Times the log was forced to disk."),
    ("loggedBytes", "espalier_store_logged_bytes_total", "counter", "Bytes of commits since the data folder was made."),
    ("historyBytes", "espalier_store_log_bytes", "gauge", "Bytes of log kept for recovery and history."),
    ("flushes", "espalier_store_flushes_total", "counter", "Memtables written out."),
    ("compactions", "espalier_store_compactions_total", "counter", "Compactions done."),
    ("pendingCompactionBytes", "espalier_store_pending_compaction_bytes", "gauge", "Bytes that wait for compaction."),
    ("throttledMicros", "espalier_store_throttled_microseconds_total", "counter", "How long commits were slowed down."),
    (
        "writesStopped",
        "espalier_store_writes_stopped",
        "gauge",
        "1 if a write to disk has failed and only a restart helps.",
    ),
];

fn store(server: &Server, page: &mut Page) {
    let status = server.store.status();
    let status = status.as_raw();
    for (field, name, kind, help) in STORE {
        let Some(value) = status.get(field).and_then(figure) else { continue };
        page.describe(name, kind, help);
        page.sample(name, &[], value);
    }
    pattern_lag(status, page);
    let Some(ValueRef::Array(levels)) = status.get("levels") else { return };
    let levels: Vec<RawDoc<'_>> = levels.iter().filter_map(ValueRef::as_doc).collect();
    for (field, name, help) in [
        ("runs", "espalier_store_level_runs", "Sorted runs of a level."),
        ("bytes", "espalier_store_level_bytes", "Bytes of a level."),
        ("entries", "espalier_store_level_entries", "Entries of a level."),
    ] {
        page.describe(name, "gauge", help);
        for (at, level) in levels.iter().enumerate() {
            let Some(value) = level.get(field).and_then(figure) else { continue };
            page.sample(name, &[("level", &at.to_string())], value);
        }
    }
}

/// How far patterns with a declared delay are behind.
fn pattern_lag(status: RawDoc<'_>, page: &mut Page) {
    let Some(ValueRef::Array(delayed)) = status.get_doc("patterns").and_then(|patterns| patterns.get("delayed")) else {
        return;
    };
    let name = "espalier_pattern_lag_milliseconds";
    page.describe(name, "gauge", "Time since a collection's delayed patterns were last up to date.");
    for one in delayed.iter().filter_map(ValueRef::as_doc) {
        let (Some(ns), Some(lag)) = (one.get_str("ns"), one.get("lagMillis").and_then(figure)) else { continue };
        page.sample(name, &[("ns", ns)], lag);
    }
}

fn figure(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Bool(value) => Some(value.into()),
        value => Number::of(value).map(Number::to_i64_clamped),
    }
}
