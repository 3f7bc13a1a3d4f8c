//! What the tests need from elsewhere, fetched once into a cache folder outside the tree.
//!
//! Each part is idempotent: it is made in a folder of its own and moved into place when complete, so a fetch that was
//! interrupted or that runs twice at once leaves nothing half done.

mod mongod;
mod node;
mod python;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Context, Result, err};

pub use mongod::{VERSION as MONGOD_VERSION, mongod};
pub use node::node;
pub use python::python;

/// `cargo xtask fetch`: everything, with a line for each.
pub fn run() -> Result<()> {
    let parts = [("mongod", mongod as fn() -> Result<PathBuf>), ("pymongo", python), ("node packages", node)];
    let mut missing = Vec::new();
    for (name, fetch) in parts {
        match fetch() {
            Ok(path) => println!("{name}: {}", path.display()),
            Err(error) => {
                println!("{name}: cannot be had: {error}");
                missing.push(name);
            }
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(err!("not fetched: {}", missing.join(", "))) }
}

/// The cache folder: `$ESPALIER_CACHE`, else `espalier` in the user's cache.
pub fn cache() -> Result<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = from("ESPALIER_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|folder| folder.join("espalier")))
        .or_else(|| from("HOME").map(|folder| folder.join(".cache/espalier")))
        .ok_or_else(|| err!("no cache folder: set ESPALIER_CACHE"))?;
    std::fs::create_dir_all(&folder).context(folder.display())?;
    Ok(folder)
}

/// Makes `<cache>/<name>` by `make`, which fills an empty folder, unless it is there.
fn cached(name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let folder = cache()?.join(name);
    if folder.exists() {
        return Ok(folder);
    }
    eprintln!("fetching {name} into {}", folder.display());
    let partial = cache()?.join(format!("{name}.partial-{}", std::process::id()));
    std::fs::create_dir_all(&partial).context(partial.display())?;
    let made = make(&partial);
    if made.is_ok() && !folder.exists() {
        // Somebody else may have finished first; theirs is as good.
        let moved = std::fs::rename(&partial, &folder);
        if !folder.exists() {
            moved.context(folder.display())?;
        }
    }
    // Only what was left over by a failure or a lost race is still there.
    std::fs::remove_dir_all(&partial).ok();
    made.context(format!("fetching {name}"))?;
    Ok(folder)
}

/// A name that changes when the packages do, so that a new pin is fetched and an old one stays for other branches.
fn named(prefix: &str, packages: &[&str]) -> String {
    let hash = packages
        .join("\n")
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{prefix}-{:08x}", hash >> 32)
}

/// Runs a command; what it printed becomes the error if it fails.
fn execute(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let output = command.output().context(&shown)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = said.lines().rev().take(5).collect();
    Err(err!("{shown} failed: {}", last.into_iter().rev().collect::<Vec<_>>().join(" / ")))
}
