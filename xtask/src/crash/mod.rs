//! `cargo xtask crash`: clients write, the server is killed with -9 at random moments, and nothing acknowledged is lost.
//!
//! Each round: every piece of work writes on a connection of its own and remembers what was acknowledged; the process is
//! ended, mostly with kill -9; it is started again on the same folder; the stored data is compared with what was
//! remembered. What was in flight when the end came may have happened or not, but wholly.
//!
//! A round's seed is printed: a run with that seed does the same in its first round.

mod check;
mod ending;
mod ledger;
mod problems;
mod report;
mod session;
mod work;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::error::{Context, Error, Result, err};
use crate::process::{Against, Build, Espalier, Killable, Mongod, TemporaryFolder, Topology};
use crate::random::{Random, fresh_seed};
use ending::Ending;
use problems::Problems;
pub use report::Report;
pub use session::read_all;
use session::{Session, Stop};
use work::Work;

/// What a crash run is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub seconds: u64,
    pub seed: u64,
    pub build: Build,
    /// The reference must pass too, which proves the test.
    pub against: Against,
    /// Tells each round on standard output.
    pub verbose: bool,
}

/// `cargo xtask crash [--seconds N] [--seed S] [--against espalier|mongod]`.
pub fn run(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::prelude::*;
    let (build, against) = (Build::Release, Against::Espalier);
    let mut options = Options { seconds: 60, seed: fresh_seed(), build, against, verbose: true };
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
    let mut report = Report::default();
    let mut works = work::all(options.against);
    let mut client = server.connect()?;
    works.iter_mut().try_for_each(|work| work.prepare(&mut client).context(work.name()))?;
    drop(client);
    let begun = Instant::now();
    let mut seed = options.seed;
    for round in 0.. {
        if begun.elapsed() > Duration::from_secs(options.seconds) && round > 0 {
            break;
        }
        let line = one_round(&mut server, &mut works, seed, &mut report)
            .context(format!("round {round}, seed {seed}"))
            .map_err(|error| keep(&mut server, error))?;
        if options.verbose {
            println!("{:>5.0} s  round {round}, seed {seed}: {line}", begun.elapsed().as_secs_f64());
        }
        seed = Random::part(seed, 1).below(1_000_000_000);
    }
    // The reference sleeps for as long as it was told at its start, whatever it is told later.
    if options.against == Against::Espalier {
        report.checked += finish(&server, &mut works).map_err(|error| keep(&mut server, error))?;
    }
    report.resumed = works.iter().map(|work| work.resumed()).sum();
    report.acknowledged = works.iter().map(|work| work.acknowledged()).sum();
    Ok(report)
}

/// What only shows after a while with nobody writing.
fn finish(server: &impl Killable, works: &mut [Box<dyn Work>]) -> Result<u64> {
    let mut problems = Problems::default();
    let mut client = server.connect()?;
    works.iter_mut().try_for_each(|work| work.finish(&mut client, &mut problems).context(work.name()))?;
    Ok(problems.verdict()? + settle(&mut client, works)?)
}

/// Leaves the data for somebody to look at.
fn keep(server: &mut impl Killable, error: Error) -> Error {
    server.kill();
    let kept = server.keep_data();
    err!("{error}\nthe data is kept in {}", kept.display())
}

/// Writes, ends, starts and checks; tells what was done.
fn one_round(
    server: &mut impl Killable,
    works: &mut Vec<Box<dyn Work>>,
    seed: u64,
    report: &mut Report,
) -> Result<String> {
    let mut random = Random::new(seed);
    // Some rounds are long enough for flushes, compactions and the removal of what expired.
    let longest = if random.chance(1, 8) { 5_000 } else { 1_500 };
    let life = Duration::from_millis(random.between(20, longest) as u64);
    let ending = Ending::draw(&mut random);
    let ended = write_until_the_end(server, works, seed, life, ending).context(ending)?;
    report.note(ending);
    let started = Instant::now();
    server.restart().context(format!("restarting after {ending}"))?;
    let restart = started.elapsed();
    report.restarts.push(restart);
    let mut client = server.connect()?;
    let mut checked = check_all(&mut client, works).context(ending)?;
    // Otherwise what goes on in the background goes on under the next round's writes.
    if random.chance(1, 2) {
        checked += settle(&mut client, works).context(ending)?;
    }
    report.checked += checked;
    let (life, restart) = (life.as_secs_f64(), restart.as_secs_f64());
    let ended = ended.as_secs_f64();
    Ok(format!("{life:.2} s of work, {ending} ({ended:.2} s), restart {restart:.2} s, {checked} documents checked"))
}

/// Compares everything with what is remembered, and every collection with itself.
fn check_all(client: &mut Client, works: &mut [Box<dyn Work>]) -> Result<u64> {
    let mut problems = Problems::default();
    for work in works.iter_mut() {
        work.check(client, &mut problems).context(format!("checking {}", work.name()))?;
    }
    check::check(client, &mut problems)?;
    problems.verdict()
}

/// Waits for what goes on in the background; if there was anything, checks everything again.
fn settle(client: &mut Client, works: &mut [Box<dyn Work>]) -> Result<u64> {
    let mut problems = Problems::default();
    let mut waited = false;
    for work in works.iter_mut() {
        waited |= work.settle(client, &mut problems).context(work.name())?;
    }
    let checked = problems.verdict()?;
    let again = if waited { check_all(client, works).context("after background work")? } else { 0 };
    Ok(checked + again)
}

/// Lets everybody work for a while, ends the server under them and waits for them to notice.
fn write_until_the_end(
    server: &mut impl Killable,
    works: &mut Vec<Box<dyn Work>>,
    seed: u64,
    life: Duration,
    ending: Ending,
) -> Result<Duration> {
    let over = Arc::new(AtomicBool::new(false));
    let port = server.port();
    let threads: Vec<_> = works
        .drain(..)
        .enumerate()
        .map(|(number, work)| {
            let (over, random) = (Arc::clone(&over), Random::part(seed, number as u64 + 1));
            std::thread::spawn(move || write(port, work, random, &over))
        })
        .collect();
    std::thread::sleep(life);
    over.store(true, Ordering::SeqCst);
    let ended = ending.carry_out(server);
    if ended.is_err() {
        // Whoever waits for an answer must not wait for ever.
        server.kill();
    }
    for thread in threads {
        let (work, result) = thread.join().map_err(|_| err!("a writer panicked"))?;
        result.context(work.name())?;
        works.push(work);
    }
    ended
}

/// Works until the connection breaks, which must not be before the end.
fn write(port: u16, mut work: Box<dyn Work>, mut random: Random, over: &AtomicBool) -> (Box<dyn Work>, Result<()>) {
    let is_over = || over.load(Ordering::SeqCst);
    let mut session = match Client::connect(port) {
        Ok(client) => Session::new(client),
        Err(_) if is_over() => return (work, Ok(())),
        Err(error) => return (work, Err(err!("cannot connect: {error}"))),
    };
    loop {
        match work.step(&mut session, &mut random) {
            Ok(()) => {}
            Err(Stop::Broken(_)) if is_over() => return (work, Ok(())),
            Err(Stop::Broken(error)) => return (work, Err(err!("the connection broke before the end: {error}"))),
            Err(Stop::Wrong(what)) => return (work, Err(err!("{what}"))),
        }
    }
}
