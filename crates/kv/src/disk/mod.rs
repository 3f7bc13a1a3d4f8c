//! The seam to the file system: a flat folder of files that are appended to, read at an
//! offset, renamed and removed. Three implementations: the real folder, an in-memory twin that
//! can simulate a power cut, and a wrapper that makes operations fail.

mod faulty;
mod mem;
mod real;

pub use faulty::{Fault, FaultyDisk};
pub use mem::MemDisk;
pub use real::RealDisk;

use std::any::Any;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Keeps the folder locked for as long as it lives.
pub type DiskLock = Box<dyn Any + Send + Sync>;

pub trait Disk: Send + Sync {
    /// A new, empty file; an existing one of that name is replaced.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Atomically takes the place of `to`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes creations, renames and removals durable.
    fn sync_dir(&self) -> io::Result<()>;
    /// Takes the folder for this process alone; `None` if another has it.
    fn lock(&self) -> io::Result<Option<DiskLock>>;
    /// How to name a file to a human.
    fn path(&self, name: &str) -> PathBuf;
}

/// A file: appended to by one thread at a time, read by many at once.
pub trait DiskFile: Send + Sync {
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Returns when everything appended so far would survive a power cut.
    fn sync(&self) -> io::Result<()>;
    /// Nobody is likely to read the file soon: its synced bytes need not stay in memory.
    fn set_cold(&self) {}
    /// Fills `buffer` from `offset`, or fails with `UnexpectedEof`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}
