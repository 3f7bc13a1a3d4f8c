//! The parts of the tests, in the order in which they run: what is quick to fail comes first.

use std::process::Command;

use super::Part;
use crate::conformance::replay_on;
use crate::crash::{self, crash};
use crate::damage::{self, damage};
use crate::diff::{self, diff};
use crate::error::Result;
use crate::fetch;
use crate::outcome::Outcome;
use crate::process::{Against, Build, Espalier, Server, TemporaryFolder, espalier_binary};
use crate::{clients, random};

pub static PARTS: &[Part] = &[
    Part { name: "format", run: format },
    Part { name: "build", run: build },
    Part { name: "clippy", run: clippy },
    Part { name: "rustdoc", run: rustdoc },
    Part { name: "cargo test", run: cargo_test },
    Part { name: "docs", run: docs },
    Part { name: "conformance", run: conformance },
    Part { name: "mongosh", run: || client("mongosh") },
    Part { name: "node", run: || client("node") },
    Part { name: "python", run: || client("python") },
    Part { name: "rust", run: || client("rust") },
    Part { name: "crash", run: crash_briefly },
    Part { name: "damage", run: damage_briefly },
    Part { name: "diff", run: diff_briefly },
];

/// A crash run and a comparison of this length find what is broken, not what is rare; those have commands of their own.
const BRIEFLY_SECONDS: u64 = 20;
const DAMAGE_SECONDS: u64 = 10;
/// Seeds of the brief differential run, and rounds of each: the same commands every time; `cargo xtask diff` tries new ones.
const DIFF_SEEDS: [u64; 3] = [1, 2, 3];
const DIFF_ROUNDS: u64 = 200;

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(crate::root());
    command
}

fn format() -> Result<Outcome> {
    Outcome::of(&mut cargo(&["fmt", "--all", "--check"]))
}

/// The binary that the later parts run.
fn build() -> Result<Outcome> {
    Ok(Outcome::Passed(espalier_binary(Build::Release)?.display().to_string()))
}

fn clippy() -> Result<Outcome> {
    Outcome::of(&mut cargo(&[
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--features",
        "xtask/docs",
        "--",
        "-D",
        "warnings",
    ]))
}

fn rustdoc() -> Result<Outcome> {
    Outcome::of(
        cargo(&["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Unit tests, tidiness among them.
fn cargo_test() -> Result<Outcome> {
    Outcome::of(&mut cargo(&["test", "--quiet", "--workspace", "--no-fail-fast"]))
}

/// The generated pages are what the code says.
fn docs() -> Result<Outcome> {
    Outcome::of(&mut cargo(&["run", "--quiet", "--package", "xtask", "--features", "docs", "--", "docs", "--check"]))
}

fn conformance() -> Result<Outcome> {
    let server = Espalier::start(Build::Release, TemporaryFolder::in_memory("conformance")?)?;
    let summary = replay_on(server.port(), Against::Espalier, &[])?;
    let counts = format!("{} passed, {} failed", summary.passed, summary.failed);
    Ok(if summary.failed == 0 && summary.passed > 0 { Outcome::Passed(counts) } else { Outcome::Failed(counts) })
}

fn client(name: &str) -> Result<Outcome> {
    let server = Espalier::start(Build::Release, TemporaryFolder::in_memory("clients")?)?;
    match clients::CLIENTS.iter().find(|client| client.name == name) {
        Some(client) => (client.run)(&server),
        None => Ok(Outcome::Failed(format!("there is no client {name}"))),
    }
}

fn crash_briefly() -> Result<Outcome> {
    let seed = random::fresh_seed();
    let (build, against) = (Build::Release, Against::Espalier);
    let options = crash::Options { seconds: BRIEFLY_SECONDS, seed, build, against, verbose: false };
    Ok(Outcome::Passed(crash(options)?.to_string()))
}

fn damage_briefly() -> Result<Outcome> {
    let seed = random::fresh_seed();
    let options = damage::Options { seconds: DAMAGE_SECONDS, seed, build: Build::Release, verbose: false };
    Ok(Outcome::Passed(damage(options)?.to_string()))
}

fn diff_briefly() -> Result<Outcome> {
    if let Err(error) = fetch::mongod() {
        return Ok(Outcome::Skipped(error.0));
    }
    let mut commands = 0;
    let mut differences = Vec::new();
    for seed in DIFF_SEEDS {
        let report = diff(diff::Options {
            seconds: 10 * BRIEFLY_SECONDS,
            rounds_max: DIFF_ROUNDS,
            seed,
            round: None,
            kinds: Vec::new(),
            build: Build::Release,
            against: Against::Espalier,
        })?;
        commands += report.commands;
        differences.extend(report.differences);
    }
    if differences.is_empty() {
        return Ok(Outcome::Passed(format!("{commands} commands")));
    }
    Ok(Outcome::Failed(differences.join("\n")))
}
