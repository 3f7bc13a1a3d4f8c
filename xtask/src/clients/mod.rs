//! Real clients against a real server: each a session as an application has it.
//!
//! The tests under `xtask/clients` run against any MongoDB-compatible server that `ESPALIER_URI` names; they are proved
//! on the reference mongod by `cargo xtask clients --against mongod`.

mod mongosh;
mod node;
mod python;
mod rust;

use std::path::PathBuf;

use crate::error::{Result, err};
use crate::outcome::Outcome;
use crate::process::{Against, Build, Espalier, Mongod, Server, TemporaryFolder, Topology};

/// A client and how to run its tests.
pub struct Client {
    pub name: &'static str,
    pub run: fn(&dyn Server) -> Result<Outcome>,
}

/// Every client, sorted by name.
pub static CLIENTS: &[Client] = &[mongosh::MONGOSH, node::NODE, python::PYTHON, rust::RUST];

/// `cargo xtask clients [name…] [--against espalier|mongod]`.
pub fn run(mut arguments: lexopt::Parser) -> Result<()> {
    use lexopt::prelude::*;
    let (mut names, mut against, mut build) = (Vec::new(), Against::Espalier, Build::Debug);
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("against") => against = arguments.value()?.parse()?,
            Long("release") => build = Build::Release,
            Value(name) => names.push(name.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if let Some(unknown) = names.iter().find(|name| CLIENTS.iter().all(|client| client.name != **name)) {
        return Err(err!("there is no client {unknown}"));
    }
    let folder = TemporaryFolder::in_memory("clients")?;
    let server: Box<dyn Server> = if against == Against::Mongod {
        Box::new(Mongod::start(Topology::ReplicaSet, folder)?)
    } else {
        Box::new(Espalier::start(build, folder)?)
    };
    let mut failed = 0;
    for client in CLIENTS.iter().filter(|client| names.is_empty() || names.iter().any(|name| name == client.name)) {
        match (client.run)(server.as_ref())? {
            Outcome::Passed(_) => println!("{}: passed", client.name),
            Outcome::Skipped(reason) => println!("{}: skipped: {reason}", client.name),
            Outcome::Failed(report) => {
                failed += 1;
                println!("{report}\n{}: failed", client.name);
            }
        }
    }
    if failed == 0 { Ok(()) } else { Err(err!("{failed} clients failed")) }
}

fn folder(name: &str) -> PathBuf {
    crate::root().join("xtask/clients").join(name)
}
