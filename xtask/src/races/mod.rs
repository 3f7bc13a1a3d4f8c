//! `cargo xtask races`: what hand-written patterns do when sixteen clients use them at once, counted, beside the declared one.
//!
//! The application code of `seeds/` runs on plain collections of the reference and of Espalier; the same clients then use a
//! declared pattern, which does the same with ordinary commands. A number that is not zero is something that went wrong.
//! One file for each pattern, one line in `RACES`.

mod archive;
mod bucket;
mod outlier;
mod reference;
mod reviews;
mod views;

use std::fmt::Write as _;
use std::time::Instant;

use bson::doc;

use crate::client::Client;
use crate::error::{Context, Result, err};
use crate::process::{Build, Espalier, Mongod, Server, TemporaryFolder, Topology};

/// Clients at once.
const CLIENTS: usize = 16;
const DB: &str = "races";

/// What went wrong, counted: a name and a number each.
type Counts = Vec<(&'static str, u64)>;
/// Runs on an empty database of the server at this port.
type Run = fn(u16) -> Result<Counts>;

/// A pattern as its text codes it, and declared.
pub struct Race {
    name: &'static str,
    what: &'static str,
    by_hand: Run,
    /// The same with the pattern declared, for the patterns that there are.
    declared: Option<Run>,
}

/// Every race, in the order of the table.
static RACES: &[&Race] = &[
    &outlier::ADD,
    &outlier::PAGE,
    &bucket::RACE,
    &archive::RACE,
    &views::RACE,
    &reviews::COMPUTED,
    &reviews::SUBSET,
    &reviews::EDITED,
    &reference::RACE,
];

/// `cargo xtask races [name…] [--debug]`.
pub fn run(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::prelude::*;
    let (mut names, mut build) = (Vec::new(), Build::Release);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("debug") => build = Build::Debug,
            Value(name) => names.push(name.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if let Some(unknown) = names.iter().find(|name| !RACES.iter().any(|race| race.name == **name)) {
        let known: Vec<&str> = RACES.iter().map(|race| race.name).collect();
        return Err(err!("there is no race {unknown}; there are {}", known.join(", ")));
    }
    let mongod = Mongod::start(Topology::Standalone, TemporaryFolder::in_memory("races-mongod")?)?;
    let espalier = Espalier::start(build, TemporaryFolder::in_memory("races-espalier")?)?;
    println!("{CLIENTS} clients at once; every number that is not 0 went wrong\n");
    let begun = Instant::now();
    let mut wrong = 0;
    for race in RACES.iter().filter(|race| names.is_empty() || names.iter().any(|name| name == race.name)) {
        println!("{}: {}", race.name, race.what);
        line("by hand, mongod", &on(&mongod, race.by_hand).context(race.name)?);
        line("by hand, Espalier", &on(&espalier, race.by_hand).context(race.name)?);
        if let Some(declared) = race.declared {
            let counts = on(&espalier, declared).context(race.name)?;
            line("declared, Espalier", &counts);
            wrong += counts.iter().map(|(_, count)| count).sum::<u64>();
        }
        println!();
    }
    println!("{:.0} s", begun.elapsed().as_secs_f64());
    if wrong > 0 {
        return Err(err!("a declared pattern went wrong"));
    }
    Ok(())
}

fn on(server: &impl Server, run: Run) -> Result<Counts> {
    server.connect()?.must(DB, &doc! { "dropDatabase": 1 })?;
    run(server.port())
}

fn line(who: &str, counts: &Counts) {
    let mut text = String::new();
    for (name, count) in counts {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{count} {name}", if text.is_empty() { "" } else { ", " });
    }
    println!("  {who:<20} {text}");
}

/// Runs the same on a connection of each of many clients, all at once, and gives what each gave.
fn together<T: Send>(
    port: u16,
    clients: usize,
    run: impl Fn(&mut Client, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let start = std::sync::Barrier::new(clients);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let (start, run) = (&start, &run);
                scope.spawn(move || {
                    let client = Client::connect(port);
                    start.wait();
                    run(&mut client?, number)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| err!("a client panicked"))?).collect()
    })
}
