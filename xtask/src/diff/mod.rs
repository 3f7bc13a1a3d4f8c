//! `cargo xtask diff`: random documents and commands on the reference and on Espalier; the answers must be the same.
//!
//! Everything comes from a seed, so a difference can be had again. Each one is made smaller and printed as a conformance
//! case, ready to be pasted into a file.

mod generate;
mod pair;
mod shrink;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use crate::error::{Error, Result, err};
use crate::process::{Against, Build, Espalier, Mongod, Server, TemporaryFolder, Topology};
use crate::random::{Random, fresh_seed};
use generate::KINDS;
use pair::Pair;

/// After so many differences a run ends; fixing those comes first.
const DIFFERENCES_MAX: usize = 20;

/// What a run is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    pub seconds: u64,
    /// The run ends after so many rounds, so that a faster machine compares the same commands.
    pub rounds_max: u64,
    pub seed: u64,
    /// Only this round, to see a difference again.
    pub round: Option<u64>,
    /// Only these kinds of command.
    pub kinds: Vec<String>,
    pub build: Build,
    /// The reference against itself, which proves that the generated commands have one answer.
    pub against: Against,
}

/// What a run saw.
#[derive(Debug, Default)]
pub struct Report {
    pub rounds: u64,
    pub commands: u64,
    pub differences: Vec<String>,
}

/// `cargo xtask diff [kind…] [--seconds N] [--seed S] [--round R]`.
pub fn run(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::prelude::*;
    let (seed, build) = (fresh_seed(), Build::Release);
    let mut options = Options {
        seconds: 60,
        rounds_max: u64::MAX,
        seed,
        round: None,
        kinds: Vec::new(),
        build,
        against: Against::Espalier,
    };
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("seconds") => options.seconds = arguments.value()?.parse()?,
            Long("seed") => options.seed = arguments.value()?.parse()?,
            Long("round") => options.round = Some(arguments.value()?.parse()?),
            Long("debug") => options.build = Build::Debug,
            Long("against") => options.against = arguments.value()?.parse()?,
            Value(kind) => options.kinds.push(kind.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let seed = options.seed;
    let report = diff(options)?;
    for difference in &report.differences {
        println!("{difference}");
    }
    let (rounds, commands, found) = (report.rounds, report.commands, report.differences.len());
    println!("seed {seed}: {rounds} rounds, {commands} commands, {found} differences");
    if found == 0 { Ok(()) } else { Err(Error::reported()) }
}

/// Compares until the time is up.
pub fn diff(options: Options) -> Result<Report> {
    let reference = Mongod::start(Topology::ReplicaSet, TemporaryFolder::in_memory("diff")?)?;
    let folder = TemporaryFolder::in_memory("diff")?;
    let subject: Box<dyn Server> = if options.against == Against::Mongod {
        Box::new(Mongod::start(Topology::ReplicaSet, folder)?)
    } else {
        Box::new(Espalier::start(options.build, folder)?)
    };
    let kinds: Vec<_> = KINDS
        .iter()
        .filter(|kind| options.kinds.is_empty() || options.kinds.iter().any(|name| name == kind.name))
        .collect();
    if kinds.is_empty() {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        return Err(err!("the kinds are {}", names.join(", ")));
    }
    let mut pair = Pair::new(reference.port(), subject.port())?;
    let mut report = Report::default();
    let deadline = Instant::now() + Duration::from_secs(options.seconds);
    let mut round = options.round.unwrap_or(0);
    while Instant::now() < deadline && report.rounds < options.rounds_max && report.differences.len() < DIFFERENCES_MAX
    {
        let mut random = Random::part(options.seed, round);
        let kind = kinds[random.below(kinds.len() as u64) as usize];
        let scenario = (kind.generate)(&mut random);
        report.rounds += 1;
        report.commands += scenario.commands.len() as u64;
        for failing in pair.differing(&scenario)? {
            let smallest = shrink::shrink(&mut pair, scenario.only(failing))?;
            report.differences.push(pair.describe(&smallest, options.seed, round)?);
        }
        if options.round.is_some() {
            break;
        }
        round += 1;
    }
    Ok(report)
}
