//! `cargo xtask crash`: clients write, the server is killed with -9 at random moments, and nothing acknowledged is lost.
//!
//! Each round: writers work on documents of their own and keep a ledger of what was acknowledged; the process is killed;
//! it is started again on the same folder; the stored data is compared with the ledgers. What was in flight when the kill
//! came may have happened or not, but wholly.

mod check;
mod ledger;
mod writer;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bson::doc;

use crate::error::{Context, Result, err};
use crate::process::{Against, Build, Espalier, Killable, Mongod, TemporaryFolder, Topology};
use crate::random::{Random, fresh_seed};
use ledger::Ledger;

const DB: &str = "crash";
const WRITERS: u64 = 8;

/// What a crash run is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub seconds: u64,
    pub seed: u64,
    pub build: Build,
    /// The reference must pass too, which proves the test.
    pub against: Against,
}

/// What a crash run saw.
#[derive(Debug, Default)]
pub struct Report {
    pub kills: u32,
    pub acknowledged: u64,
    pub checked: u64,
    pub restarts: Vec<Duration>,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.restarts.clone();
        sorted.sort();
        let at =
            |part: usize| sorted.get((sorted.len().saturating_sub(1)) * part / 2).map_or(0.0, Duration::as_secs_f64);
        write!(
            f,
            "{} kills, {} writes acknowledged, {} documents checked, 0 lost, 0 half applied; restart {:.2} / {:.2} / {:.2} s (min / median / max)",
            self.kills,
            self.acknowledged,
            self.checked,
            at(0),
            at(1),
            at(2)
        )
    }
}

/// `cargo xtask crash [--seconds N] [--seed S] [--against espalier|mongod]`.
pub fn run(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::prelude::*;
    let mut options = Options { seconds: 60, seed: fresh_seed(), build: Build::Release, against: Against::Espalier };
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("seconds") => options.seconds = arguments.value()?.parse()?,
            Long("seed") => options.seed = arguments.value()?.parse()?,
            Long("debug") => options.build = Build::Debug,
            Long("against") => options.against = arguments.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    println!("{}", crash(options)?);
    Ok(())
}

/// Kills and checks until the time is up; the error says what was lost and where the data is.
pub fn crash(options: Options) -> Result<Report> {
    let folder = TemporaryFolder::on_disk("crash")?;
    if options.against == Against::Mongod {
        crash_server(Mongod::start(Topology::ReplicaSet, folder)?, options)
    } else {
        crash_server(Espalier::start(options.build, folder)?, options)
    }
}

fn crash_server<S: Killable>(mut server: S, options: Options) -> Result<Report> {
    let mut random = Random::new(options.seed);
    let mut report = Report::default();
    let mut ledgers: Vec<Ledger> = (0..WRITERS).map(Ledger::new).collect();
    prepare(&server)?;
    let deadline = Instant::now() + Duration::from_secs(options.seconds);
    while Instant::now() < deadline {
        let round = write_until_killed(&mut server, &mut ledgers, &mut random, options.seed, report.kills)
            .and_then(|()| {
                report.kills += 1;
                let started = Instant::now();
                server.restart().context("restarting")?;
                report.restarts.push(started.elapsed());
                report.checked += check::check(&server, &mut ledgers)?;
                Ok(())
            })
            .context(format!("seed {}, after {} kills", options.seed, report.kills));
        if let Err(error) = round {
            server.kill();
            let kept = server.keep_data();
            return Err(err!("{error}\nthe data is kept in {}", kept.display()));
        }
    }
    report.acknowledged = ledgers.iter().map(|ledger| ledger.acknowledged).sum();
    Ok(report)
}

fn prepare(server: &impl Killable) -> Result<()> {
    let mut client = server.connect()?;
    client.must(DB, &doc! { "create": "main" })?;
    client.must(
        DB,
        &doc! { "createIndexes": "unique", "indexes": [{ "key": { "key": 1 }, "name": "key_1", "unique": true }] },
    )?;
    Ok(())
}

/// Lets every writer work for a random time, kills the server under them and waits for them to notice.
fn write_until_killed(
    server: &mut impl Killable,
    ledgers: &mut Vec<Ledger>,
    random: &mut Random,
    seed: u64,
    round: u32,
) -> Result<()> {
    let killed = Arc::new(AtomicBool::new(false));
    let port = server.port();
    let threads: Vec<_> = ledgers
        .drain(..)
        .map(|ledger| {
            let killed = Arc::clone(&killed);
            let random = Random::part(seed, (u64::from(round) << 8) | ledger.writer);
            std::thread::spawn(move || writer::write(port, ledger, random, &killed))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(random.between(20, 1500) as u64));
    killed.store(true, Ordering::SeqCst);
    server.kill();
    for thread in threads {
        let ledger = thread.join().map_err(|_| err!("a writer panicked"))??;
        ledgers.push(ledger);
    }
    Ok(())
}
