//! Declared patterns beside the same done by hand on mongod: one file for each pattern, one line in `RUNS`. Each prints lines
//! of its own, because what is compared differs: the goal stands in the line.

mod archive;
mod bucket;
mod migration;
mod outlier;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::Options;
use crate::client::Client;
use crate::error::{Result, err};
use crate::process::Killable;

/// Connections of these rows.
const CONNECTIONS: usize = 8;
const DB: &str = "bench_patterns";

/// A comparison of its own.
pub struct Run {
    pub name: &'static str,
    pub run: fn(&Both<'_>) -> Result<()>,
}

/// Both servers, and for how long to measure.
pub struct Both<'a> {
    pub mongod: &'a dyn Killable,
    pub espalier: &'a dyn Killable,
    pub duration: Duration,
}

pub static RUNS: &[Run] = &[
    Run { name: "outlier-append", run: outlier::append },
    Run { name: "outlier-page", run: outlier::page },
    Run { name: "bucket-insert", run: bucket::insert },
    Run { name: "bucket-daily", run: bucket::daily },
    Run { name: "archive", run: archive::run },
    Run { name: "migration", run: migration::run },
];

/// Those of the runs that are asked for by name.
pub fn run(options: &Options, mongod: &dyn Killable, espalier: &dyn Killable) -> Result<()> {
    let both = Both { mongod, espalier, duration: Duration::from_secs_f64(options.seconds) };
    for run in RUNS.iter().filter(|run| options.rows.iter().any(|row| row == run.name || row == "patterns")) {
        (run.run)(&both)?;
    }
    Ok(())
}

/// What several connections achieved.
#[derive(Debug, Default)]
struct Rate {
    done: u64,
    failed: u64,
    elapsed: Duration,
    latencies: Vec<Duration>,
}

impl Rate {
    fn per_second(&self) -> f64 {
        self.done as f64 / self.elapsed.as_secs_f64()
    }

    fn at(&self, share: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((last as f64 * share) as usize).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        write!(f, "{:.0}/s, p50 {:.2} ms, p99 {:.2} ms", self.per_second(), ms(self.at(0.5)), ms(self.at(0.99)))?;
        if self.failed > 0 {
            write!(f, ", {} failed", self.failed)?;
        }
        Ok(())
    }
}

/// Does the same on each of some connections until `is_over`; the number that each operation gets is its own.
fn drive(
    server: &dyn Killable,
    connections: usize,
    is_over: impl Fn(u64) -> bool + Sync,
    one: impl Fn(&mut Client, u64) -> Result<()> + Sync,
) -> Result<Rate> {
    let clients: Vec<Client> = (0..connections).map(|_| server.connect()).collect::<Result<_>>()?;
    let next = std::sync::atomic::AtomicU64::new(0);
    let total = Mutex::new(Rate::default());
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for mut client in clients {
            let (next, total, is_over, one) = (&next, &total, &is_over, &one);
            scope.spawn(move || {
                let mut own = Rate::default();
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if is_over(number) {
                        break;
                    }
                    let sent = Instant::now();
                    match one(&mut client, number) {
                        Ok(()) => own.done += 1,
                        Err(_) => own.failed += 1,
                    }
                    own.latencies.push(sent.elapsed());
                }
                let mut total = total.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                total.done += own.done;
                total.failed += own.failed;
                total.latencies.append(&mut own.latencies);
            });
        }
    });
    let mut total = total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    total.elapsed = begun.elapsed();
    total.latencies.sort_unstable();
    if total.done == 0 {
        return Err(err!("{}: nothing succeeded of {} operations", server.name(), total.failed));
    }
    Ok(total)
}

/// As [`drive`], for a while.
fn drive_for(
    server: &dyn Killable,
    connections: usize,
    duration: Duration,
    one: impl Fn(&mut Client, u64) -> Result<()> + Sync,
) -> Result<Rate> {
    let end = Instant::now() + duration;
    drive(server, connections, |_| Instant::now() >= end, one)
}

/// A comparison with its goal: how many times as good, and whether that is enough.
fn verdict(row: &str, what: &str, ratio: f64, goal: f64) {
    let verdict = if ratio >= goal { "reached" } else { "MISSED" };
    println!("{row:<16} {what}: {ratio:.2}x, goal {goal}x {verdict}");
}

/// As [`verdict`], for what must not be more than so many times as much.
fn bound(row: &str, what: &str, ratio: f64, most: f64) {
    let verdict = if ratio <= most { "kept" } else { "BROKEN" };
    println!("{row:<16} {what}: {ratio:.2}x, at most {most}x {verdict}");
}
