//! The Node driver, Mongoose and mongosh, out of npm.

use std::path::PathBuf;
use std::process::Command;

use super::{cached, execute, named};
use crate::error::Result;

/// Pinned, so that a run of today and one of next year test the same clients.
const PACKAGES: [&str; 4] = ["mongodb@7.8.0", "mongoose@9.12.0", "mongosh@2.12.0", "snappy@7.3.3"];

/// The folder whose `node_modules` has the packages.
pub fn node() -> Result<PathBuf> {
    cached(&named("node", &PACKAGES), |folder| {
        std::fs::write(folder.join("package.json"), "{\"private\": true, \"name\": \"espalier-clients\"}\n")?;
        execute(
            Command::new("npm")
                .args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
                .arg(folder)
                .args(PACKAGES)
                .current_dir(folder),
        )
    })
}
