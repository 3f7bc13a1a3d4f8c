//! TTL indexes: documents whose indexed date is past by `expireAfterSeconds` are removed, once a minute as in MongoDB.

use std::sync::Arc;
use std::time::{Duration, Instant};

use espalier_query::{Context, Filter};
use espalier_store::{Begin, Delete, Hint, IndexSpec, Mode, Namespace};
use espalier_value::number::Number;
use espalier_value::{ArrayBuf, DocBuf, Result, ValueRef};

use crate::clock;
use crate::parameters;
use crate::server::Server;

/// How often the parameters are looked at: a change of `ttlMonitorSleepSecs` takes effect after this.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs until the server stops.
pub(crate) fn run(server: &Arc<Server>) {
    let mut last = Instant::now();
    while !server.wait_for_stop(Some(LOOK_EVERY)) {
        let pause = Duration::from_secs(parameter(server, "ttlMonitorSleepSecs"));
        let is_due = last.elapsed() >= pause && parameter(server, "ttlMonitorEnabled") != 0;
        if !is_due || server.fsync_locks.is_locked() {
            continue;
        }
        last = Instant::now();
        if let Err(error) = pass(server)
            && !server.is_stopping()
        {
            server.log.warn("ttl", "expired documents could not be looked for", &[("error", &error)]);
        }
    }
}

/// A parameter's value as a number; true is 1.
fn parameter(server: &Server, name: &str) -> u64 {
    let Some(parameter) = parameters::find(name) else { return 0 };
    match server.parameters.get(server, parameter).or_null() {
        ValueRef::Bool(on) => u64::from(on),
        value => Number::of(value).map_or(0, |n| n.to_i64_clamped().max(0) as u64),
    }
}

/// Looks through every TTL index once.
fn pass(server: &Arc<Server>) -> Result<()> {
    for (ns, spec) in ttl_indexes(server)? {
        match expire(server, &ns, &spec) {
            Ok(0) => {}
            Ok(deleted) => {
                server.metrics.ttl_deleted.add(deleted);
                let fields: [(&str, &dyn std::fmt::Display); 3] =
                    [("ns", &ns), ("index", &spec.name), ("deleted", &deleted)];
                server.log.debug("ttl", "expired documents were removed", &fields);
            }
            // One collection that cannot be cleaned, or was dropped meanwhile, keeps no other from it.
            Err(error) if !server.is_stopping() => {
                let fields: [(&str, &dyn std::fmt::Display); 3] =
                    [("ns", &ns), ("index", &spec.name), ("error", &error)];
                server.log.warn("ttl", "expired documents could not be removed", &fields);
            }
            Err(error) => return Err(error),
        }
    }
    server.metrics.ttl_passes.add(1);
    Ok(())
}

fn context(server: &Server) -> Arc<Context> {
    let mut context = Context::new(clock::now_ms(), server.ids.random());
    context.cluster_time = server.clock.next();
    context.interrupt = server.stop_interrupt.clone();
    Arc::new(context)
}

fn ttl_indexes(server: &Server) -> Result<Vec<(Namespace, IndexSpec)>> {
    let transaction =
        server.store.begin(Begin { mode: Mode::Auto, want_changes: false, raw: false, context: context(server) })?;
    let mut found = Vec::new();
    for database in transaction.databases()? {
        let collections = transaction.collections(&database.name)?;
        // A view has no indexes to ask for.
        for collection in collections.iter().filter(|collection| collection.options.view.is_none()) {
            let ns = Namespace::new(&database.name, &collection.name);
            let indexes = transaction.indexes(&ns)?.into_iter();
            let ttl = indexes.filter(|index| !index.building && index.spec.expire_after_seconds.is_some());
            found.extend(ttl.map(|index| (ns.clone(), index.spec)));
        }
    }
    Ok(found)
}

fn expire(server: &Server, ns: &Namespace, spec: &IndexSpec) -> Result<u64> {
    let context = context(server);
    let Some(filter) = expired(spec, context.now_ms)? else { return Ok(0) };
    let hint = Some(Hint::Name(spec.name.clone()));
    let delete = Delete { multi: true, hint, ..Delete::new(Arc::new(filter), Arc::clone(&context)) };
    let mut transaction = server.store.begin(Begin { mode: Mode::Auto, want_changes: false, raw: false, context })?;
    let deleted = transaction.delete(ns, &delete)?.deleted;
    transaction.commit()?;
    if deleted > 0 {
        server.metrics.docs_deleted.add(deleted);
        server.wake_all();
    }
    Ok(deleted)
}

/// What an index lets expire: a date, or an array with a date, that lies far enough back. What is no date never does.
fn expired(spec: &IndexSpec, now_ms: i64) -> Result<Option<Filter>> {
    let (Some(part), Some(seconds)) = (spec.parts.first(), spec.expire_after_seconds) else { return Ok(None) };
    let latest = now_ms.saturating_sub((seconds * 1000.0) as i64);
    let (mut limit, mut old) = (DocBuf::new(), DocBuf::new());
    limit.append("$lte", ValueRef::DateTime(latest));
    old.append(part.path.as_str(), &limit);
    let source = match &spec.partial {
        None => old,
        // A document that the index does not hold is not its to remove.
        Some(partial) => {
            let mut both = ArrayBuf::new();
            both.push(&old).push(partial.source());
            let mut source = DocBuf::new();
            source.append("$and", &both);
            source
        }
    };
    Filter::parse(source.as_raw(), &Default::default()).map(Some)
}
