//! `cargo xtask test`: the one test command.
//!
//! Each part is one line of `PARTS`; the parts run one after another, and the table at the end says how each went. A part
//! that cannot have what it needs is skipped with its reason, which fails the run when `CI=true`.

mod parts;

use std::time::{Duration, Instant};

use crate::error::{Error, Result, err};
use crate::outcome::Outcome;

/// A part of the tests.
struct Part {
    name: &'static str,
    run: fn() -> Result<Outcome>,
}

/// Runs the named parts, or all.
pub fn run(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::prelude::*;
    let mut names = Vec::new();
    while let Some(argument) = arguments.next()? {
        match argument {
            Value(name) => names.push(name.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if let Some(unknown) = names.iter().find(|name| parts::PARTS.iter().all(|part| part.name != **name)) {
        let known: Vec<&str> = parts::PARTS.iter().map(|part| part.name).collect();
        return Err(err!("there is no part {unknown}; there are {}", known.join(", ")));
    }
    let mut table = Vec::new();
    for part in parts::PARTS.iter().filter(|part| names.is_empty() || names.iter().any(|name| name == part.name)) {
        println!("== {}", part.name);
        let started = Instant::now();
        let outcome = (part.run)().unwrap_or_else(|error| Outcome::Failed(error.0));
        if let Outcome::Failed(report) = &outcome {
            println!("{report}");
        }
        table.push((part.name, outcome, started.elapsed()));
    }
    summarize(&table)
}

fn summarize(table: &[(&str, Outcome, Duration)]) -> Result<()> {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    println!();
    for (name, outcome, elapsed) in table {
        let (word, detail) = match outcome {
            Outcome::Passed(detail) => {
                passed += 1;
                ("passed", detail.as_str())
            }
            Outcome::Failed(_) => {
                failed += 1;
                ("FAILED", "")
            }
            Outcome::Skipped(reason) => {
                skipped += 1;
                ("skipped", reason.lines().next().unwrap_or(""))
            }
        };
        println!("{name:<14} {word:<8} {:>7.1} s  {detail}", elapsed.as_secs_f64());
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    let strict = std::env::var("CI").is_ok_and(|value| value == "true");
    // With CI=true nothing may be left out.
    if failed > 0 || (skipped > 0 && strict) { Err(Error::reported()) } else { Ok(()) }
}
