//! How a part of the tests ended.

use std::process::{Command, Output};

use crate::error::{Context, Result};

/// The end of a part.
#[derive(Debug)]
pub enum Outcome {
    /// With what to tell about it, which may be nothing.
    Passed(String),
    Failed(String),
    /// What it needs cannot be had, and why.
    Skipped(String),
}

impl Outcome {
    /// Runs a command whose exit code is the outcome and whose output is shown if it fails.
    pub fn of(command: &mut Command) -> Result<Outcome> {
        let shown = format!("{command:?}");
        let output = command.output().context(shown)?;
        if output.status.success() {
            return Ok(Outcome::Passed(String::new()));
        }
        Ok(Outcome::Failed(said(&output)))
    }
}

/// Everything a command printed.
pub fn said(output: &Output) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{stdout}{stderr}").trim().to_owned()
}
