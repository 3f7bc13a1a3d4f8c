//! How long a change event is on its way: one client waits in a change stream, another inserts a document now and then.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use bson::{Document, doc};

use super::{DB, Options};
use crate::client::Client;
use crate::error::{Result, err};
use crate::process::Killable;

const COLLECTION: &str = "events";
/// Between two inserts, so that the watcher waits again.
const PAUSE: Duration = Duration::from_millis(2);

/// Prints, for each server in turn and in alternating order, how long after the insert was sent the event was there, and
/// how long after it was acknowledged.
pub fn run(options: &Options, servers: &[&dyn Killable]) -> Result<()> {
    for server in servers {
        server.connect()?.run(DB, &doc! { "create": COLLECTION })?;
    }
    for round in 0..options.rounds {
        for step in 0..servers.len() {
            let server = servers[(step + round as usize) % servers.len()];
            let (mut sent, mut acknowledged) = measure(server, options.seconds)?;
            println!(
                "{}: change-event, from sending the insert {}, from its acknowledgement {} ({} events)",
                server.name(),
                show(&mut sent),
                show(&mut acknowledged),
                sent.len()
            );
        }
    }
    Ok(())
}

/// Signed, as an event may be there before its write's acknowledgement. In microseconds.
fn measure(server: &dyn Killable, seconds: f64) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut watcher = server.connect()?;
    let opened =
        watcher.must(DB, &doc! { "aggregate": COLLECTION, "pipeline": [{ "$changeStream": {} }], "cursor": {} })?;
    let id = opened.get_document("cursor")?.get_i64("id")?;
    let (arrived, arrivals) = mpsc::channel::<Result<Option<Instant>>>();
    let waiting = std::thread::spawn(move || {
        loop {
            let event = next(&mut watcher, id);
            let is_over = event.is_err();
            if arrived.send(event).is_err() || is_over {
                return;
            }
        }
    });
    let mut writer = server.connect()?;
    let (mut sent, mut acknowledged) = (Vec::new(), Vec::new());
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        std::thread::sleep(PAUSE);
        let before = Instant::now();
        writer.must(DB, &doc! { "insert": COLLECTION, "documents": [{ "text": "as long as a small document is" }] })?;
        let after = Instant::now();
        let arrival = loop {
            match arrivals.recv_timeout(Duration::from_secs(10)).map_err(|_| err!("an event did not come"))?? {
                Some(arrival) => break arrival,
                None => continue,
            }
        };
        sent.push(micros(before, arrival));
        acknowledged.push(micros(after, arrival));
    }
    writer.run(DB, &doc! { "killCursors": COLLECTION, "cursors": [id] })?;
    drop(arrivals);
    // It ends with the cursor; its last words are of no interest.
    drop(waiting.join());
    Ok((sent, acknowledged))
}

/// When the next event was there; `None` if none came in a while.
fn next(watcher: &mut Client, id: i64) -> Result<Option<Instant>> {
    let reply: Document = watcher.must(DB, &doc! { "getMore": id, "collection": COLLECTION, "maxTimeMS": 1000 })?;
    let now = Instant::now();
    Ok((!reply.get_document("cursor")?.get_array("nextBatch")?.is_empty()).then_some(now))
}

fn micros(from: Instant, to: Instant) -> f64 {
    match to.checked_duration_since(from) {
        Some(after) => after.as_secs_f64() * 1e6,
        None => -(from.duration_since(to).as_secs_f64() * 1e6),
    }
}

fn show(values: &mut [f64]) -> String {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values.get(((values.len() as f64 - 1.0) * part) as usize).copied().unwrap_or(f64::NAN);
    format!("p50 {:.0} µs, p99 {:.0} µs", at(0.5), at(0.99))
}
