//! PyMongo, by Python's own test runner.

use std::process::Command;

use super::{Client, folder};
use crate::error::Result;
use crate::fetch;
use crate::outcome::Outcome;
use crate::process::Server;

pub const PYTHON: Client = Client { name: "python", run };

fn run(server: &dyn Server) -> Result<Outcome> {
    let packages = match fetch::python() {
        Ok(packages) => packages,
        Err(error) => return Ok(Outcome::Skipped(error.0)),
    };
    let (secure, mut command) = (server.secure()?, Command::new("python3"));
    secure.tell(&mut command);
    Outcome::of(
        command
            // A warning, such as of a compressor that is missing, would mean that less is tested than it says.
            .args([
                "-W",
                "error::UserWarning",
                "-m",
                "unittest",
                "discover",
                "--pattern",
                "*_test.py",
                "--start-directory",
            ])
            .arg(folder("python"))
            .env("PYTHONPATH", packages)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("ESPALIER_URI", server.uri()),
    )
}
