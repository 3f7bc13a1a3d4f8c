//! `cargo xtask bench`: Espalier beside mongod, row by row.
//!
//! Both servers run at the same time on the same disk; each round measures one and then the other, in alternating order,
//! so that a slow moment of the machine hits both. What counts is the ratio and its spread over the rounds.

mod aggregate;
mod change_event;
mod data;
mod derive;
mod footprint;
mod index;
mod insert;
mod load;
mod patterns;
mod point;
mod report;
mod scan;
mod session;
mod small;
mod template;
mod transaction;
mod update;

use std::process::Command;
use std::time::Duration;

use crate::client::Client;
use crate::error::{Result, err};
use crate::process::{Against, Build, Espalier, Killable, Mongod, TemporaryFolder, Topology};
use crate::random::Random;
use load::{Measurement, Requests};

const DB: &str = "bench";

/// A row of the table.
pub struct Row {
    pub name: &'static str,
    pub what: &'static str,
    pub on: On,
    /// Whether mongod must be a replica set for it, which makes it slower.
    pub replica_set: bool,
    pub connections: &'static [usize],
    /// Puts the server in the state that a run starts from.
    pub prepare: fn(&mut Client) -> Result<()>,
    /// What one connection sends.
    pub requests: fn(Stream) -> Result<Box<dyn Requests>>,
}

/// The data that a row works on, loaded once if a row needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Nothing,
    /// The large collection.
    Big,
    /// The collections of the aggregations.
    Small,
}

/// What the requests of one connection are made from.
pub struct Stream {
    /// The number of the connection, and a number that no other run has.
    pub connection: u64,
    pub run: u64,
    pub random: Random,
    /// How many documents the large collection has.
    pub documents: u64,
    /// A server that carries patterns out.
    pub is_espalier: bool,
}

/// Every row, in the order of the table.
static ROWS: &[&Row] = &[
    &insert::ONE,
    &insert::ONE_JOURNALED,
    &insert::THOUSAND,
    &point::BY_ID,
    &index::TEN,
    &index::RANGE,
    &update::INC,
    &update::INC_HOT,
    &update::INC_APPROXIMATE,
    &update::INC_APPROXIMATE_JOURNALED,
    &update::PUSH,
    &scan::GROUP,
    &aggregate::GROUP,
    &aggregate::MATCH_GROUP,
    &aggregate::LOOKUP,
    &aggregate::SORT_LIMIT,
    &aggregate::UNWIND,
    &aggregate::BUCKET_AUTO,
    &aggregate::WINDOW,
    &transaction::TRANSACTION,
    &derive::REVIEWS,
    &derive::REVIEWS_HOT,
    &derive::FOLLOW,
];

/// The connections of an ordinary row.
const CONNECTIONS: &[usize] = &[1, 8, 32];

struct Options {
    rows: Vec<String>,
    rounds: u32,
    seconds: f64,
    documents: u64,
    /// Only with this many connections, where a row has it.
    connections: Option<usize>,
    topology: Topology,
    build: Build,
    /// mongod beside mongod: how far from 1 a ratio strays on this machine by itself.
    against: Against,
}

/// `cargo xtask bench [row…] [--rounds N] [--seconds S] [--documents N] [--connections N]`.
pub fn run(arguments: lexopt::Parser) -> Result<()> {
    if cfg!(debug_assertions) {
        return run_optimized();
    }
    let options = parse(arguments)?;
    let wanted = |name: &str| options.rows.is_empty() || options.rows.iter().any(|row| row == name);
    let rows: Vec<&Row> = ROWS.iter().copied().filter(|row| wanted(row.name)).collect();
    introduce(&options);
    let mut mongod: Box<dyn Killable> =
        Box::new(Mongod::start(options.topology, TemporaryFolder::on_disk("bench-mongod")?)?);
    let mut subject = start_subject(&options)?;
    if wanted("footprint") {
        footprint::empty(&options, &[mongod.as_ref(), subject.as_ref()])?;
    }
    let needs = |on: On| rows.iter().any(|row| row.on == on);
    for server in [&mongod, &subject] {
        let loaded = |what: &str, elapsed: Duration| {
            println!("{}: {what} loaded and indexed in {:.1} s", server.name(), elapsed.as_secs_f64());
        };
        if wanted("footprint") || needs(On::Big) {
            let elapsed = data::load(server.as_ref(), options.documents)?;
            loaded(&format!("{} documents", options.documents), elapsed);
        }
        if needs(On::Small) {
            loaded("the collections of the aggregations", small::load(server.as_ref(), options.documents)?);
        }
    }
    if wanted("footprint") {
        footprint::loaded(mongod.as_mut())?;
        footprint::loaded(subject.as_mut())?;
    }
    let mut replica_set = None;
    if options.rows.iter().any(|row| row == "change-event") {
        // A standalone mongod has no change streams.
        if options.topology != Topology::ReplicaSet {
            return Err(err!("change-event needs --replica-set"));
        }
        change_event::run(&options, &[mongod.as_ref(), subject.as_ref()])?;
    }
    if options.against == Against::Espalier {
        patterns::run(&options, mongod.as_ref(), subject.as_ref())?;
    }
    report::header();
    for row in rows {
        let reference: &dyn Killable = match row.replica_set && options.topology == Topology::Standalone {
            false => mongod.as_ref(),
            true => {
                if replica_set.is_none() {
                    let folder = TemporaryFolder::on_disk("bench-replica-set")?;
                    replica_set = Some(Mongod::start(Topology::ReplicaSet, folder)?);
                }
                replica_set.as_ref().map_or(mongod.as_ref(), |server| server)
            }
        };
        let is_wanted = |connections: &&usize| options.connections.is_none_or(|only| only == **connections);
        for &connections in row.connections.iter().filter(is_wanted) {
            let mut rounds = Vec::new();
            for round in 0..options.rounds {
                rounds.push(measure_both(row, connections, round, &options, reference, subject.as_ref())?);
            }
            report::row(row, connections, &rounds);
        }
    }
    Ok(())
}

/// The client must not be the slower side: the same command again, by an optimized build.
fn run_optimized() -> Result<()> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--quiet", "--release", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .current_dir(crate::root())
        .status()?;
    if status.success() { Ok(()) } else { Err(err!("the optimized build ended with {status}")) }
}

fn start_subject(options: &Options) -> Result<Box<dyn Killable>> {
    if options.against == Against::Mongod {
        return Ok(Box::new(Mongod::start(options.topology, TemporaryFolder::on_disk("bench-subject")?)?));
    }
    Ok(Box::new(Espalier::start(options.build, TemporaryFolder::on_disk("bench-espalier")?)?))
}

/// One round: both servers, in an order that changes from round to round.
fn measure_both(
    row: &Row,
    connections: usize,
    round: u32,
    options: &Options,
    mongod: &dyn Killable,
    subject: &dyn Killable,
) -> Result<(Measurement, Measurement)> {
    let measure = |server: &dyn Killable| -> Result<Measurement> {
        (row.prepare)(&mut server.connect()?)?;
        let duration = Duration::from_secs_f64(options.seconds);
        load::measure(row, server, connections, u64::from(round), options.documents, duration)
    };
    if round.is_multiple_of(2) {
        let reference = measure(mongod)?;
        Ok((measure(subject)?, reference))
    } else {
        let own = measure(subject)?;
        Ok((own, measure(mongod)?))
    }
}

fn introduce(options: &Options) {
    let topology = match options.topology {
        Topology::Standalone => "standalone, without an oplog: its fastest set-up",
        Topology::ReplicaSet => "a replica set of one member",
    };
    println!("mongod is {topology}. Both journal; every write says w: 1, j: false, except where the row says j: true.");
    println!(
        "{} rounds of {} s, servers alternating; ratio = Espalier's throughput / mongod's, over 1 is faster",
        options.rounds, options.seconds
    );
}

fn parse(mut arguments: lexopt::Parser) -> Result<Options> {
    use lexopt::prelude::*;
    let mut options = Options {
        rows: Vec::new(),
        rounds: 3,
        seconds: 3.0,
        documents: 1_000_000,
        connections: None,
        topology: Topology::Standalone,
        build: Build::Release,
        against: Against::Espalier,
    };
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("rounds") => options.rounds = arguments.value()?.parse()?,
            Long("seconds") => options.seconds = arguments.value()?.parse()?,
            Long("documents") => options.documents = arguments.value()?.parse()?,
            Long("connections") => options.connections = Some(arguments.value()?.parse()?),
            Long("against") => options.against = arguments.value()?.parse()?,
            Long("replica-set") => options.topology = Topology::ReplicaSet,
            Value(name) => options.rows.push(name.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let known = |name: &str| {
        matches!(name, "footprint" | "change-event" | "patterns")
            || ROWS.iter().any(|row| row.name == name)
            || patterns::RUNS.iter().any(|run| run.name == name)
    };
    if let Some(unknown) = options.rows.iter().find(|name| !known(name)) {
        let of_patterns = patterns::RUNS.iter().map(|run| run.name);
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).chain(of_patterns).collect();
        return Err(err!(
            "there is no row {unknown}; there are footprint, change-event, patterns, {}",
            names.join(", ")
        ));
    }
    Ok(options)
}
