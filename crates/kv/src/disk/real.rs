//! A folder of the operating system's file system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, DiskFile, DiskLock};

const LOCK_NAME: &str = "LOCK";

pub struct RealDisk {
    folder: PathBuf,
}

impl RealDisk {
    /// The folder is created if it is missing.
    pub fn new(folder: impl AsRef<Path>) -> io::Result<RealDisk> {
        let folder = folder.as_ref().to_path_buf();
        fs::create_dir_all(&folder)?;
        Ok(RealDisk { folder })
    }
}

impl Disk for RealDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(self.folder.join(name))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).append(true).open(self.folder.join(name))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.folder.join(from), self.folder.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.folder.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // A name that is not Unicode is none of ours.
            if let Ok(name) = entry.file_name().into_string()
                && entry.file_type()?.is_file()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }

    fn lock(&self) -> io::Result<Option<DiskLock>> {
        // Not truncated: the file's content does not matter, its lock does.
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(self.folder.join(LOCK_NAME))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn set_cold(&self) {
        // Advice only: where it is not taken, the file merely stays in memory.
        #[cfg(target_os = "linux")]
        let _ = rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::DontNeed);
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_and_lock_behave() {
        let folder = std::env::temp_dir().join(format!("espalier-kv-real-{}", std::process::id()));
        let disk = RealDisk::new(&folder).unwrap();
        let file = disk.create("a.tmp").unwrap();
        file.append(b"hello ").unwrap();
        file.append(b"world").unwrap();
        file.sync().unwrap();
        disk.rename("a.tmp", "a").unwrap();
        disk.sync_dir().unwrap();
        let mut buffer = [0; 5];
        disk.open("a").unwrap().read_at(6, &mut buffer).unwrap();
        assert_eq!(&buffer, b"world");
        let past = disk.open("a").unwrap().read_at(7, &mut buffer).unwrap_err();
        assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(disk.list().unwrap(), ["a"]);

        let lock = disk.lock().unwrap();
        assert!(lock.is_some());
        assert!(disk.lock().unwrap().is_none(), "taken");
        drop(lock);
        assert!(disk.lock().unwrap().is_some(), "free again");
        fs::remove_dir_all(&folder).unwrap();
    }
}
