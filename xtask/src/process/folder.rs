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
        sweep(parent);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("espalier-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).context(path.display())?;
        Ok(TemporaryFolder { path, kept: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder there, for somebody to look at, under a name that no later run removes.
    pub fn keep(&mut self) -> PathBuf {
        let kept = self.path.with_extension("kept");
        if std::fs::rename(&self.path, &kept).is_ok() {
            self.path = kept;
        }
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

/// Removes what runs left behind that were themselves killed: folders of ours whose process is gone.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if owner(&name).is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // Somebody else may be sweeping too.
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}

/// The process that a folder's name says it belongs to.
fn owner(name: &str) -> Option<u32> {
    if !Path::new("/proc/self").exists() {
        return None;
    }
    let mut parts = name.strip_prefix("espalier-")?.rsplit('-');
    parts.next()?.parse::<u32>().ok()?;
    parts.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{TemporaryFolder, owner};

    #[test]
    fn a_folder_names_its_owner_until_it_is_kept() {
        let mut folder = TemporaryFolder::in_memory("folder-test").unwrap();
        let name = |folder: &TemporaryFolder| folder.path().file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(owner(&name(&folder)), Some(std::process::id()));
        let kept = folder.keep();
        assert!(kept.is_dir());
        assert_eq!(owner(&name(&folder)), None);
        drop(folder);
        assert!(kept.is_dir());
        std::fs::remove_dir_all(kept).unwrap();
    }

    #[test]
    fn other_folders_have_no_owner() {
        for name in ["espalier", "espalier-data", "espalier-x-1", "other-x-1-2", "espalier-crash-12-0.kept"] {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
