//! Which conformance files a command means.

use std::path::{Path, PathBuf};

use super::file::TestFile;
use crate::error::{Context, Result, err};

/// The folder of the files, and in it the folder of deliberate differences.
pub fn folder() -> PathBuf {
    crate::root().join("conformance")
}

pub fn differences_folder() -> PathBuf {
    folder().join("differences")
}

/// The files named by the arguments, or all: each a file or folder, as a path or as a name below `conformance`.
pub fn select(arguments: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if arguments.is_empty() {
        collect(&folder(), &mut found)?;
    }
    for argument in arguments {
        let below = folder().join(argument);
        let mut with_extension = below.clone().into_os_string();
        with_extension.push(".test");
        let path = [argument.clone(), below, PathBuf::from(with_extension)]
            .into_iter()
            .find(|path| path.exists())
            .ok_or_else(|| err!("there is no {} and none below conformance", argument.display()))?;
        // Absolute, so that the place below the folder can be told whatever the current directory is.
        collect(&path.canonicalize()?, &mut found)?;
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_file() {
        found.push(path.to_owned());
        return Ok(());
    }
    if path.ends_with("conformance/differences") {
        return Ok(());
    }
    for entry in std::fs::read_dir(path).context(path.display())? {
        let entry = entry?.path();
        if entry.is_dir() || entry.extension().is_some_and(|extension| extension == "test") {
            collect(&entry, found)?;
        }
    }
    Ok(())
}

/// The path below the conformance folder, which names a file in messages and finds its differences.
pub fn name(path: &Path) -> PathBuf {
    let folder = folder();
    let folder = folder.canonicalize().unwrap_or(folder);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.strip_prefix(&folder).map_or_else(|_| path.clone(), Path::to_owned)
}

pub fn read(path: &Path) -> Result<TestFile> {
    let text = std::fs::read_to_string(path).context(path.display())?;
    TestFile::parse(&text).context(name(path).display())
}
