//! Connections that send as fast as they are answered, one thread each.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use bson::Document;

use super::{Row, Stream};
use crate::client::Client;
use crate::error::{Context, Result, err};
use crate::process::Killable;
use crate::random::Random;

/// The requests of one connection.
pub trait Requests: Send {
    /// The next message, complete.
    fn next(&mut self) -> &[u8];
    /// How many operations the last message counts for.
    fn operations(&self) -> u64 {
        1
    }
    /// Whether the operation is begun anew after this answer, which is not a success: others were in its way.
    fn begins_anew(&mut self, _reply: &Document) -> bool {
        false
    }
    /// How many documents a reply must at least hold bytes for; tells an answer from an empty one.
    fn reply_bytes_min(&self) -> usize {
        0
    }
}

/// What a run achieved.
#[derive(Clone, Debug, Default)]
pub struct Measurement {
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
    /// Processor time of the server for one operation, its background work included. Other work on the machine changes
    /// it little, so it tells more than throughput where the machine is not idle.
    pub cpu: Duration,
}

/// Runs the requests of a row over some connections for a while.
pub fn measure(
    row: &Row,
    server: &dyn Killable,
    connections: usize,
    round: u64,
    documents: u64,
    duration: Duration,
) -> Result<Measurement> {
    let is_espalier = server.name() == "espalier";
    let barrier = Arc::new(Barrier::new(connections + 1));
    let mut threads = Vec::new();
    for connection in 0..connections as u64 {
        let random = Random::part(round, connection);
        let run = (round << 8) | connections as u64;
        let requests = (row.requests)(Stream { connection, run, random, documents, is_espalier })?;
        let client = Client::connect(server.port())?;
        let barrier = Arc::clone(&barrier);
        threads.push(std::thread::spawn(move || {
            barrier.wait();
            drive(client, requests, duration)
        }));
    }
    let cpu_before = cpu_time(server.process_id())?;
    barrier.wait();
    let mut latencies = Vec::new();
    let (mut operations, mut per_second) = (0, 0.0);
    for thread in threads {
        let (done, elapsed, mut own) = thread.join().map_err(|_| err!("a connection's thread panicked"))??;
        operations += done;
        per_second += done as f64 / elapsed.as_secs_f64();
        latencies.append(&mut own);
    }
    if operations == 0 {
        return Err(err!("{}: nothing was answered", row.name));
    }
    latencies.sort_unstable();
    let at = |share: f64| Duration::from_nanos(latencies[((latencies.len() - 1) as f64 * share) as usize]);
    let cpu = cpu_time(server.process_id())?.saturating_sub(cpu_before).div_f64(operations as f64);
    Ok(Measurement { per_second, p50: at(0.5), p99: at(0.99), cpu })
}

/// Processor time that a process has taken so far, in user and kernel mode.
fn cpu_time(process: u32) -> Result<Duration> {
    /// What Linux counts in, on every architecture.
    const TICKS_PER_SECOND: u64 = 100;
    let path = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(&path).context(&path)?;
    // The name in parentheses may hold anything; the fields after it are numbers.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(11).take(2).map(str::parse::<u64>).sum::<std::result::Result<u64, _>>();
    let ticks = ticks.map_err(|error| err!("{path}: {error}"))?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// One connection: operations done, the time they took, and each request's own time in nanoseconds.
fn drive(mut client: Client, mut requests: Box<dyn Requests>, duration: Duration) -> Result<(u64, Duration, Vec<u64>)> {
    let mut latencies = Vec::with_capacity(1 << 16);
    let reply_bytes_min = requests.reply_bytes_min();
    let started = Instant::now();
    let mut operations = 0;
    loop {
        let message = requests.next();
        let sent = Instant::now();
        let reply = client.send(message)?;
        latencies.push(sent.elapsed().as_nanos() as u64);
        if !is_success(reply) || reply.len() < reply_bytes_min {
            let reply = Document::from_reader(reply)?;
            if requests.begins_anew(&reply) {
                continue;
            }
            return Err(err!("an unexpected answer: {reply}"));
        }
        operations += requests.operations();
        // Not in the middle of an operation of several messages: a transaction left open would hold up what comes next.
        if started.elapsed() >= duration && requests.operations() > 0 {
            return Ok((operations, started.elapsed(), latencies));
        }
    }
}

/// Looks for `ok: 1.0` and for `writeErrors` without decoding the reply.
fn is_success(reply: &[u8]) -> bool {
    const OK: &[u8] = b"\x01ok\0\0\0\0\0\0\0\xf0\x3f";
    const ERRORS: &[u8] = b"\x04writeErrors\0";
    // `ok` stands near the end and errors are in short replies: long ones are not searched through.
    let tail = &reply[reply.len().saturating_sub(400)..];
    let ok = tail.windows(OK.len()).any(|window| window == OK);
    ok && (reply.len() > 4096 || !reply.windows(ERRORS.len()).any(|window| window == ERRORS))
}
