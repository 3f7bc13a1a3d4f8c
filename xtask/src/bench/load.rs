//! Connections that send as fast as they are answered: a thread for each processor, each with its part of them, as an
//! event loop has. A thread for each connection would take a good part of the processors from the servers.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use bson::Document;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

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
    let drivers = connections.min(std::thread::available_parallelism().map_or(1, usize::from));
    let mut parts: Vec<Vec<Driven>> = (0..drivers).map(|_| Vec::new()).collect();
    for connection in 0..connections as u64 {
        let random = Random::part(round, connection);
        let run = (round << 8) | connections as u64;
        let requests = (row.requests)(Stream { connection, run, random, documents, is_espalier })?;
        parts[connection as usize % drivers].push(Driven::new(Client::connect(server.port())?, requests));
    }
    let barrier = Arc::new(Barrier::new(drivers + 1));
    let mut threads = Vec::new();
    for part in parts {
        let barrier = Arc::clone(&barrier);
        threads.push(std::thread::spawn(move || {
            if part.len() > 1 {
                step_back();
            }
            barrier.wait();
            drive(part, duration)
        }));
    }
    let cpu_before = cpu_time(server.process_id())?;
    barrier.wait();
    let mut latencies = Vec::new();
    let (mut operations, mut per_second) = (0, 0.0);
    for thread in threads {
        for connection in thread.join().map_err(|_| err!("a thread with connections panicked"))?? {
            operations += connection.operations;
            per_second += connection.operations as f64 / connection.elapsed.as_secs_f64();
            latencies.extend(connection.latencies);
        }
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

/// One connection, with a request under way, and what it achieved.
struct Driven {
    client: Client,
    requests: Box<dyn Requests>,
    sent: Instant,
    operations: u64,
    /// How long it took, once it is over.
    elapsed: Duration,
    /// Each request's own time in nanoseconds.
    latencies: Vec<u64>,
}

impl Driven {
    fn new(client: Client, requests: Box<dyn Requests>) -> Driven {
        let latencies = Vec::with_capacity(1 << 16);
        Driven { client, requests, sent: Instant::now(), operations: 0, elapsed: Duration::ZERO, latencies }
    }

    fn begin(&mut self) -> Result<()> {
        let message = self.requests.next();
        self.sent = Instant::now();
        self.client.begin(message)
    }

    /// Takes the reply. False if an operation of several messages is not over: a transaction left open would hold up
    /// what comes next.
    fn end(&mut self) -> Result<bool> {
        let reply = self.client.receive()?;
        self.latencies.push(self.sent.elapsed().as_nanos() as u64);
        if !is_success(reply) || reply.len() < self.requests.reply_bytes_min() {
            let reply = Document::from_reader(reply)?;
            if self.requests.begins_anew(&reply) {
                return Ok(false);
            }
            return Err(err!("an unexpected answer: {reply}"));
        }
        let operations = self.requests.operations();
        self.operations += operations;
        Ok(operations > 0)
    }
}

/// A thread that an answer wakes is not to push the server aside that is about to send the next one: clients are on other
/// machines, as a rule. Where it is not allowed, the figures of both servers are lower.
fn step_back() {
    #[cfg(target_os = "linux")]
    // SAFETY: all zero is a valid `sched_param`, and the call only reads it. Zero is the calling thread.
    unsafe {
        let param: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &param);
    }
}

/// Keeps all connections busy for a while.
fn drive(mut busy: Vec<Driven>, duration: Duration) -> Result<Vec<Driven>> {
    let started = Instant::now();
    let mut over = Vec::new();
    busy.iter_mut().try_for_each(Driven::begin)?;
    while !busy.is_empty() {
        for at in answered(&busy)?.into_iter().rev() {
            let is_between = busy[at].end()?;
            if is_between && started.elapsed() >= duration {
                let mut done = busy.swap_remove(at);
                done.elapsed = started.elapsed();
                over.push(done);
            } else {
                busy[at].begin()?;
            }
        }
    }
    Ok(over)
}

/// Waits until there are replies, and says which have one.
fn answered(busy: &[Driven]) -> Result<Vec<usize>> {
    if busy.len() == 1 {
        // Receiving waits as well.
        return Ok(vec![0]);
    }
    let mut polled: Vec<PollFd<'_>> =
        busy.iter().map(|driven| PollFd::new(driven.client.stream(), PollFlags::IN)).collect();
    let patience = Timespec { tv_sec: 120, tv_nsec: 0 };
    match poll(&mut polled, Some(&patience)) {
        Ok(0) => Err(err!("no connection was answered for {} s", patience.tv_sec)),
        Ok(_) => Ok(polled.iter().enumerate().filter(|(_, fd)| !fd.revents().is_empty()).map(|(at, _)| at).collect()),
        Err(Errno::INTR) => Ok(Vec::new()),
        Err(error) => Err(err!("waiting for replies failed: {error}")),
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
