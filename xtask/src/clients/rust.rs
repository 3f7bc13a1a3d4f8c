//! The Rust driver, in a project of its own whose build stays in the cache folder.

use std::process::Command;

use super::{Client, folder};
use crate::error::Result;
use crate::fetch;
use crate::outcome::{Outcome, said};
use crate::process::Server;

pub const RUST: Client = Client { name: "rust", run };

fn run(server: &dyn Server) -> Result<Outcome> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let command = |verb: &str| {
        let mut command = Command::new(&cargo);
        command
            .args([verb, "--quiet", "--locked"])
            .current_dir(folder("rust"))
            .env("CARGO_TARGET_DIR", fetch::cache()?.join("rust-client-target"));
        Ok::<Command, crate::error::Error>(command)
    };
    // Fetching may fail for want of a network, which is no fault of the server; building may not.
    let fetched = Command::new(&cargo).args(["fetch", "--quiet", "--locked"]).current_dir(folder("rust")).output()?;
    if !fetched.status.success() {
        return Ok(Outcome::Skipped(said(&fetched)));
    }
    Outcome::of(command("run")?.env("ESPALIER_URI", server.uri()))
}
