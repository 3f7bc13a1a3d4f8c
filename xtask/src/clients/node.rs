//! The Node driver and Mongoose, by Node's own test runner.

use std::process::Command;

use super::{Client, folder};
use crate::error::Result;
use crate::fetch;
use crate::outcome::Outcome;
use crate::process::Server;

pub const NODE: Client = Client { name: "node", run };

fn run(server: &dyn Server) -> Result<Outcome> {
    let packages = match fetch::node() {
        Ok(packages) => packages,
        Err(error) => return Ok(Outcome::Skipped(error.0)),
    };
    let (secure, mut command) = (server.secure()?, Command::new("node"));
    secure.tell(&mut command);
    Outcome::of(
        command
            .args(["--test", "--test-reporter=spec"])
            .args(["driver.test.js", "mongoose.test.js", "patterns.test.js", "refusal.test.js", "secure.test.js"])
            .current_dir(folder("node"))
            .env("NODE_PATH", packages.join("node_modules"))
            .env("ESPALIER_URI", server.uri()),
    )
}
