//! `cargo xtask`: everything a developer runs besides the database itself.

mod bench;
mod client;
mod clients;
mod conformance;
mod crash;
mod damage;
mod diff;
mod docs;
mod error;
mod fetch;
mod outcome;
mod process;
mod races;
mod random;
mod seeds;
mod shell;
mod test;
#[cfg(test)]
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use error::Result;

/// A subcommand: its name, its arguments and what it does as `help` shows them, and the function that runs it.
struct Command {
    name: &'static str,
    arguments: &'static str,
    help: &'static str,
    run: fn(lexopt::Parser) -> Result<()>,
}

/// Every subcommand, sorted by name.
static COMMANDS: &[Command] = &[
    Command {
        name: "bench",
        arguments: "[row…] [--rounds N] [--seconds S] [--documents N] [--connections N] [--replica-set]",
        help: "measure Espalier beside mongod",
        run: bench::run,
    },
    Command {
        name: "clients",
        arguments: "[mongosh|node|python|rust…] [--against espalier|mongod] [--release]",
        help: "run the sessions of real drivers",
        run: clients::run,
    },
    Command {
        name: "crash",
        arguments: "[--seconds N] [--seed S] [--debug] [--against espalier|mongod]",
        help: "kill the server with -9 again and again while clients write, and look for what is lost",
        run: crash::run,
    },
    Command {
        name: "damage",
        arguments: "[--seconds N] [--seed S] [--debug]",
        help: "damage files of a stopped and of a running server, fill its disk, and look for wrong answers",
        run: damage::run,
    },
    Command {
        name: "diff",
        arguments: "[aggregate|find|sorted|update…] [--seconds N] [--seed S] [--round R] [--debug]",
        help: "run random commands on the reference and on Espalier and compare the answers",
        run: diff::run,
    },
    Command {
        name: "docs",
        arguments: "[--check]",
        help: "write docs/compatibility.md and docs/limits.md out of the code, or say whether they are up to date",
        run: docs::run,
    },
    Command {
        name: "fetch",
        arguments: "",
        help: "fetch the reference mongod and the clients that the tests use, once",
        run: |arguments| no_arguments(arguments).and_then(|()| fetch::run()),
    },
    Command {
        name: "races",
        arguments: "[name…] [--debug]",
        help: "run hand-written patterns with sixteen clients at once and count what goes wrong, beside the declared ones",
        run: races::run,
    },
    Command {
        name: "record",
        arguments: "[path…] [--port N]",
        help: "run conformance cases on the reference mongod and write its answers into the files",
        run: conformance::record,
    },
    Command {
        name: "replay",
        arguments: "[path…] [--against espalier|mongod] [--port N] [--release]",
        help: "run conformance cases on Espalier and compare with what was recorded",
        run: conformance::replay,
    },
    Command {
        name: "test",
        arguments: "[part…]",
        help: "run every test there is, or the named parts, and say how each went",
        run: test::run,
    },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next().and_then(|name| name.into_string().ok()).unwrap_or_default();
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        print_help();
        let asked = matches!(name.as_str(), "" | "help" | "--help" | "-h");
        return if asked { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    };
    match (command.run)(lexopt::Parser::from_args(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.0.is_empty() {
                eprintln!("cargo xtask {name}: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn print_help() {
    println!("cargo xtask <command>\n");
    for command in COMMANDS {
        println!("  {} {}\n      {}", command.name, command.arguments, command.help);
    }
}

fn no_arguments(mut arguments: lexopt::Parser) -> Result<()> {
    match arguments.next()? {
        None => Ok(()),
        Some(argument) => Err(argument.unexpected().into()),
    }
}

/// The root of the project.
fn root() -> PathBuf {
    // Cargo says at run time where the package is; the place at build time serves a binary that is run by hand.
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    package.parent().map_or_else(|| PathBuf::from("."), PathBuf::from)
}
