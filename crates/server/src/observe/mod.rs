//! What the server tells about its work: counters, the log of slow commands, the profiler, `top`, and metrics over HTTP.
//!
//! A command leaves what it did in [`Told`](crate::call::Told) and in the [`Work`](espalier_query::Work) of its context;
//! [`finish`] passes that on once it has ended. Time spent waiting for something to happen is no work.

mod entry;
mod http;
mod latency;
mod operation;
mod profiler;
mod prometheus;
pub(crate) mod redact;
mod top;

use std::time::Duration;

use espalier_value::{Code, Error};

use crate::call::Call;
use crate::commands::Command;
use crate::log::{Field, Level};
use crate::request::Request;

pub(crate) use http::serve;
pub(crate) use latency::Latency;
pub(crate) use operation::{Class, Kind, namespace};
pub(crate) use profiler::{COLLECTION as PROFILE, Profiler, Setting, create as create_profile};
pub(crate) use top::{Top, Usage};

/// A command that has ended.
pub(crate) struct Finished<'a, 'c> {
    pub command: &'static Command,
    pub request: &'a Request<'a>,
    pub call: &'a Call<'c>,
    pub error: Option<&'a Error>,
    pub elapsed: Duration,
    pub keys_examined: u64,
    pub docs_examined: u64,
    pub response_bytes: usize,
}

impl Finished<'_, '_> {
    pub fn kind(&self) -> Kind {
        Kind::of(self.command.name)
    }

    pub fn millis(&self) -> i64 {
        i64::try_from(self.elapsed.as_millis()).unwrap_or(i64::MAX)
    }

    pub fn micros(&self) -> u64 {
        u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX)
    }
}

/// Counts a command that has ended, and writes down what was slow or is to be profiled.
pub(crate) fn finish(index: usize, finished: &Finished<'_, '_>) {
    let server = finished.call.server;
    let (kind, micros) = (finished.kind(), finished.micros());
    let metrics = &server.metrics;
    metrics.finished(index, kind.class(), micros, finished.error.is_some());
    metrics.write_conflicts.add(u64::from(finished.error.is_some_and(|error| error.code() == Code::WriteConflict)));
    metrics.keys_examined.add(finished.keys_examined);
    metrics.docs_examined.add(finished.docs_examined);
    metrics.collection_scans.add(u64::from(finished.call.work.is_collection_scan()));
    metrics.sorts.add(u64::from(finished.call.work.has_sorted()));
    metrics.docs_returned.add(finished.call.told.returned);
    let ns = namespace(finished.command, finished.request);
    if let Some((db, collection)) = ns {
        let scanned = finished.call.work.is_collection_scan();
        server.top.record(db, collection, kind, micros, scanned, || top::existing(&*server.store));
    }
    let verdict = server.profiler.judge(finished, ns.is_some());
    if verdict.profile {
        profiler::write(finished, verdict.entry);
    }
    if verdict.log && server.log.enabled(Level::Info) {
        log(finished, Level::Info, "Slow query");
    } else if server.log.enabled(Level::Debug) {
        log(finished, Level::Debug, "command");
    }
}

fn log(finished: &Finished<'_, '_>, level: Level, message: &str) {
    let Finished { command, request, call, .. } = *finished;
    let told = &call.told;
    let ns = match namespace(command, request) {
        Some((db, collection)) => format!("{db}.{collection}"),
        None => format!("{}.$cmd", request.db),
    };
    let body = redact::command(request.body);
    let shown = redact::Shown(body.as_raw());
    let (millis, peer) = (finished.millis(), call.client.peer);
    let waited = told.waited.as_millis();
    let plan = call.work.plan();
    let op = finished.kind().name();
    let mut fields: Vec<Field<'_>> = vec![
        ("type", &op),
        ("command", &command.name),
        ("ns", &ns),
        ("durationMillis", &millis),
        ("keysExamined", &finished.keys_examined),
        ("docsExamined", &finished.docs_examined),
        ("nreturned", &told.returned),
        ("reslen", &finished.response_bytes),
        ("remote", &peer),
    ];
    if let Some(plan) = &plan {
        fields.push(("planSummary", plan));
    }
    if call.work.has_sorted() {
        fields.push(("hasSortStage", &true));
    }
    if waited > 0 {
        fields.push(("waitedMillis", &waited));
    }
    for (name, count) in told.counts.shown() {
        fields.push((name, count));
    }
    fields.push(("body", &shown));
    if let Some(error) = finished.error {
        fields.push(("error", error));
    }
    match level {
        Level::Info => call.server.log.info("command", message, &fields),
        _ => call.server.log.debug("command", message, &fields),
    }
}
