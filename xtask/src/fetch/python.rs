//! PyMongo and what it needs to compress.

use std::path::PathBuf;
use std::process::Command;

use super::{cached, execute, named};
use crate::error::Result;

/// Pinned, so that a run of today and one of next year test the same client.
const PACKAGES: [&str; 3] =
    ["pymongo==4.19.0", "python-snappy==0.7.3", "backports.zstd==1.8.0; python_version < '3.14'"];

/// The folder to put on `PYTHONPATH`: unlike a virtual environment it can be moved into place when complete.
pub fn python() -> Result<PathBuf> {
    cached(&named("python", &PACKAGES), |folder| {
        execute(
            Command::new("python3").args(["-m", "pip", "install", "--quiet", "--target"]).arg(folder).args(PACKAGES),
        )
    })
}
