//! `espalier serve`: opens the engine, serves it, and ends in good order.

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use espalier_engine::{Engine, EngineOptions, Recovered};
use espalier_patterns::Patterned;
use espalier_server::limits::Limits;
use espalier_server::start;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::arguments::Serve;
use crate::cache_size::default_cache_bytes;
use crate::memory;

pub fn run(serve: Serve) -> Result<(), Box<dyn Error>> {
    let Serve { data, cache_bytes, options } = serve;
    // Before anything slow: a signal that comes early must not be lost.
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let shown = data.display().to_string();
    let cache_bytes = cache_bytes.unwrap_or_else(default_cache_bytes);
    let engine_options = engine_options(data, cache_bytes, &options.limits);
    let (engine, recovered) = Engine::open(engine_options)
        .map_err(|error| format!("the data folder '{shown}' cannot be opened: {}", error.message()))?;
    let store = Patterned::open(Arc::new(engine.clone()))
        .map_err(|error| format!("the patterns in '{shown}' cannot be carried out: {}", error.message()))?;
    let store = Arc::new(store);
    let (listen, encrypted) = (options.listen.clone(), options.tls.is_some());
    let serving = start(options, store.clone()).map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let address = serving.local_addr();
    let uri = format!("mongodb://{address}/{}", if encrypted { "?tls=true" } else { "" });
    let mut out = std::io::stdout().lock();
    if let Some(line) = describe(&recovered) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "Espalier {} is listening: {uri}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "Data folder: {shown}")?;
    if let Some(metrics) = serving.server().metrics_addr() {
        writeln!(out, "Metrics: http://{metrics}/metrics")?;
    }
    writeln!(out, "Connect with: mongosh \"{uri}\"")?;
    out.flush()?;
    drop(out);
    memory::give_back();
    let server = Arc::clone(serving.server());
    let handle = signals.handle();
    let watcher = std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            server.want_stop();
        }
    });
    serving.wait();
    handle.close();
    // Nothing it could have panicked with matters now.
    let _ = watcher.join();
    let stopped = serving.stop();
    store.close();
    stopped
        .and_then(|()| engine.close())
        .map_err(|error| format!("the data could not be written out: {}", error.message()))?;
    // Whoever started it may have closed the other end by now.
    writeln!(std::io::stdout(), "Stopped; everything is on disk").ok();
    Ok(())
}

/// The engine's part of the server's options.
pub fn engine_options(folder: PathBuf, cache_bytes: u64, limits: &Limits) -> EngineOptions {
    EngineOptions {
        folder: Some(folder),
        cache_bytes: cache_bytes as usize,
        collections_max: limits.collections_max as usize,
        indexes_max: limits.indexes_max as usize,
        index_fields_max: limits.index_fields_max as usize,
        index_key_bytes_max: limits.index_key_bytes_max as usize,
        database_name_bytes_max: limits.database_name_bytes_max as usize,
        namespace_bytes_max: limits.namespace_bytes_max as usize,
        sort_bytes_max: limits.sort_bytes_max as usize,
        document_bytes_max: limits.document_bytes_max as usize,
        document_depth_max: limits.document_depth_max as usize,
        transaction_bytes_max: limits.transaction_bytes_max as usize,
        history_bytes: limits.history_bytes_max,
        history_age: std::time::Duration::from_secs(limits.history_seconds_max),
        snapshot_age: std::time::Duration::from_secs(limits.snapshot_seconds_max),
        snapshot_bytes: limits.snapshot_bytes_max,
    }
}

/// What had to be done because the last run did not end in good order.
fn describe(recovered: &Recovered) -> Option<String> {
    if recovered.commits == 0 && recovered.torn_tail_bytes == 0 && recovered.unfinished_builds.is_empty() {
        return None;
    }
    let mut line = format!(
        "Recovered after an unclean end: {} commits replayed, {} bytes of an unfinished write dropped",
        recovered.commits, recovered.torn_tail_bytes
    );
    if !recovered.unfinished_builds.is_empty() {
        line.push_str(&format!(", unfinished index builds undone: {}", recovered.unfinished_builds.join(", ")));
    }
    Some(line)
}
