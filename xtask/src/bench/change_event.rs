//! How long a change event is on its way: one client waits in a change stream, others insert a
//! document now and then.

use std::time::{Duration, Instant};

use bson::{Document, doc};

use super::{DB, Options};
use crate::client::Client;
use crate::error::{Result, err};
use crate::process::Killable;

const COLLECTION: &str = "events";
/// Between two inserts, so that the watcher waits again.
const PAUSE: Duration = Duration::from_millis(2);

/// How many write at once.
const WRITERS: [usize; 3] = [1, 8, 32];

/// Prints, for each server in turn and in alternating order, how long after an insert was sent its event was there.
pub fn run(options: &Options, servers: &[&dyn Killable]) -> Result<()> {
    for server in servers {
        server.connect()?.run(DB, &doc! { "create": COLLECTION })?;
    }
    for writers in WRITERS.into_iter().filter(|writers| options.connections.is_none_or(|only| only == *writers)) {
        for round in 0..options.rounds {
            for step in 0..servers.len() {
                let server = servers[(step + round as usize) % servers.len()];
                let mut latencies = measure(server, writers, options.seconds)?;
                println!(
                    "{}: change-event, {writers} writers, from sending the insert {} ({} events)",
                    server.name(),
                    show(&mut latencies),
                    latencies.len()
                );
            }
        }
    }
    Ok(())
}

/// In microseconds. Each document says when it was sent.
fn measure(server: &dyn Killable, writers: usize, seconds: f64) -> Result<Vec<f64>> {
    let base = Instant::now();
    let mut watcher = server.connect()?;
    let opened =
        watcher.must(DB, &doc! { "aggregate": COLLECTION, "pipeline": [{ "$changeStream": {} }], "cursor": {} })?;
    let id = opened.get_document("cursor")?.get_i64("id")?;
    let end = base + Duration::from_secs_f64(seconds);
    let mut writing = Vec::new();
    for _ in 0..writers {
        let mut client = server.connect()?;
        writing.push(std::thread::spawn(move || write(&mut client, base, end)));
    }
    let mut latencies = Vec::new();
    let mut quiet = 0;
    // Until all that was written has come.
    while Instant::now() < end || quiet < 2 {
        let came = next(&mut watcher, id, base, &mut latencies)?;
        quiet = if came { 0 } else { quiet + 1 };
    }
    let mut written = 0;
    for thread in writing {
        written += thread.join().map_err(|_| err!("a writer panicked"))??;
    }
    watcher.run(DB, &doc! { "killCursors": COLLECTION, "cursors": [id] })?;
    match written == latencies.len() {
        true => Ok(latencies),
        false => Err(err!("{written} documents were written, {} events came", latencies.len())),
    }
}

/// Inserts now and then; says how often.
fn write(client: &mut Client, base: Instant, end: Instant) -> Result<usize> {
    let mut written = 0;
    while Instant::now() < end {
        std::thread::sleep(PAUSE);
        let sent = base.elapsed().as_secs_f64() * 1e6;
        let document = doc! { "text": "as long as a small document is", "sent": sent };
        client.must(DB, &doc! { "insert": COLLECTION, "documents": [document] })?;
        written += 1;
    }
    Ok(written)
}

/// The next events, if any came in a while.
fn next(watcher: &mut Client, id: i64, base: Instant, latencies: &mut Vec<f64>) -> Result<bool> {
    let reply: Document = watcher.must(DB, &doc! { "getMore": id, "collection": COLLECTION, "maxTimeMS": 200 })?;
    let now = base.elapsed().as_secs_f64() * 1e6;
    let events = reply.get_document("cursor")?.get_array("nextBatch")?;
    for event in events {
        let document = event.as_document().ok_or_else(|| err!("an event is no document"))?;
        latencies.push(now - document.get_document("fullDocument")?.get_f64("sent")?);
    }
    Ok(!events.is_empty())
}

fn show(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values.get(((values.len() as f64 - 1.0) * part) as usize).copied().unwrap_or(f64::NAN);
    format!("p50 {:.0} µs, p99 {:.0} µs", at(0.5), at(0.99))
}
