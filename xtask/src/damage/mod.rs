//! `cargo xtask damage`: files of a stopped server are damaged, and it is started again; then those of a running one.
//!
//! Whatever was done to a file: either the server refuses to start and names the file, or a read fails and names it, or
//! every document is exactly the one that was written. Never a wrong answer, never a panic. Last, a disk that takes no
//! more: writes are refused, reads go on, and nothing acknowledged is lost.

mod content;
mod full;
mod harm;
mod running;
mod stopped;

use std::time::{Duration, Instant};

use crate::error::{Context, Result};
use crate::process::Build;
use crate::random::{Random, fresh_seed};
use content::Original;

/// What a run is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub seconds: u64,
    pub seed: u64,
    pub build: Build,
    /// Tells each trial on standard output.
    pub verbose: bool,
}

/// What a run saw.
#[derive(Debug, Default)]
pub struct Report {
    pub refused: u32,
    pub failed_reads: u32,
    pub unharmed: u32,
    pub torn: u32,
    pub running: u32,
    pub full: u32,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "stopped: {} starts refused, {} with reads refused, {} unharmed, {} torn tails cut; running: {} trials; \
             full disk: {} trials; 0 wrong documents, 0 panics",
            self.refused, self.failed_reads, self.unharmed, self.torn, self.running, self.full
        )
    }
}

/// How one trial ended.
enum Verdict {
    Refused,
    FailedReads,
    Unharmed,
    /// The last writes of a killed server are gone, which nobody can tell from a write that was under way.
    Torn,
}

/// `cargo xtask damage [--seconds N] [--seed S] [--debug]`.
pub fn run(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::prelude::*;
    let mut options = Options { seconds: 60, seed: fresh_seed(), build: Build::Release, verbose: true };
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("seconds") => options.seconds = arguments.value()?.parse()?,
            Long("seed") => options.seed = arguments.value()?.parse()?,
            Long("debug") => options.build = Build::Debug,
            other => return Err(other.unexpected().into()),
        }
    }
    println!("{}", damage(options)?);
    Ok(())
}

/// Damages and checks until the time is up.
pub fn damage(options: Options) -> Result<Report> {
    let originals = [Original::make(options.build, true)?, Original::make(options.build, false)?];
    let mut report = Report::default();
    let begun = Instant::now();
    let mut seed = options.seed;
    for trial in 0.. {
        if begun.elapsed() > Duration::from_secs(options.seconds) && trial > 2 {
            break;
        }
        let mut random = Random::new(seed);
        let original = &originals[random.below(2) as usize];
        let line = match (trial, random.below(10)) {
            // Each kind at least once, however short the run.
            (1, _) | (_, 0) => {
                report.full += 1;
                full::trial(options.build, &mut random)
            }
            (2, _) | (_, 1..3) => {
                report.running += 1;
                running::trial(options.build, original, &mut random)
            }
            _ => stopped::trial(options.build, original, &mut random).map(|(verdict, line)| {
                match verdict {
                    Verdict::Refused => report.refused += 1,
                    Verdict::FailedReads => report.failed_reads += 1,
                    Verdict::Unharmed => report.unharmed += 1,
                    Verdict::Torn => report.torn += 1,
                }
                line
            }),
        };
        let line = line.context(format!("trial {trial}, seed {seed}"))?;
        if options.verbose {
            println!("{:>5.0} s  trial {trial}, seed {seed}: {line}", begun.elapsed().as_secs_f64());
        }
        seed = Random::part(seed, 1).below(1_000_000_000);
    }
    Ok(report)
}
