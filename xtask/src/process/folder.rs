//! Temporary folders, removed when dropped.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Context, Result};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A folder of its own, gone when dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    kept: bool,
}

impl TemporaryFolder {
    /// In the system's place for temporary files: on a disk, for what measures or tests durability.
    pub fn on_disk(name: &str) -> Result<TemporaryFolder> {
        TemporaryFolder::below(&std::env::temp_dir(), name)
    }

    /// In memory where the system has such a place, for what only needs answers.
    pub fn in_memory(name: &str) -> Result<TemporaryFolder> {
        let shm = Path::new("/dev/shm");
        if shm.is_dir() {
            return TemporaryFolder::below(shm, name).or_else(|_| TemporaryFolder::on_disk(name));
        }
        TemporaryFolder::on_disk(name)
    }

    fn below(parent: &Path, name: &str) -> Result<TemporaryFolder> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("espalier-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).context(path.display())?;
        Ok(TemporaryFolder { path, kept: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder there, for somebody to look at.
    pub fn keep(&mut self) -> PathBuf {
        self.kept = true;
        self.path.clone()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if !self.kept {
            // A folder that cannot be removed is the system's to clean; there is nobody to tell.
            std::fs::remove_dir_all(&self.path).ok();
        }
    }
}
