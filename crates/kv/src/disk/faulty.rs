//! A disk that fails on purpose: the nth write-side operation, once or from then on.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Disk, DiskFile, DiskLock};

/// What happens at the chosen operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// That operation fails; later ones work.
    Once,
    /// That operation and all later ones fail, as after a power cut.
    Forever,
    /// If that operation is an append, half of it is written before it fails.
    ShortWrite,
}

struct Plan {
    fault: Fault,
    fail_at: AtomicU64,
    done: AtomicU64,
}

impl Plan {
    fn step(&self) -> Option<Fault> {
        let n = self.done.fetch_add(1, Ordering::SeqCst);
        let at = self.fail_at.load(Ordering::SeqCst);
        (n == at || (n > at && self.fault == Fault::Forever)).then_some(self.fault)
    }

    fn check(&self) -> io::Result<()> {
        match self.step() {
            None => Ok(()),
            Some(_) => Err(failure()),
        }
    }
}

fn failure() -> io::Error {
    io::Error::other("injected failure")
}

/// Passes everything to another disk until the planned operation.
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    plan: Arc<Plan>,
}

impl FaultyDisk {
    /// Operations that change anything are counted from 0; number `fail_at` fails.
    pub fn new(inner: Arc<dyn Disk>, fault: Fault, fail_at: u64) -> FaultyDisk {
        FaultyDisk { inner, plan: Arc::new(Plan { fault, fail_at: AtomicU64::new(fail_at), done: AtomicU64::new(0) }) }
    }

    /// Operations counted so far.
    pub fn operations(&self) -> u64 {
        self.plan.done.load(Ordering::SeqCst)
    }

    /// From now on: the next counted operation fails.
    pub fn fail_next(&self) {
        self.plan.fail_at.store(self.operations(), Ordering::SeqCst);
    }

    fn wrap(&self, inner: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(FaultyFile { inner, plan: self.plan.clone() })
    }
}

impl Disk for FaultyDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.plan.check()?;
        Ok(self.wrap(self.inner.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(self.inner.open(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.plan.check()?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.plan.check()?;
        self.inner.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.plan.check()?;
        self.inner.sync_dir()
    }

    fn lock(&self) -> io::Result<Option<DiskLock>> {
        self.inner.lock()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }
}

struct FaultyFile {
    inner: Arc<dyn DiskFile>,
    plan: Arc<Plan>,
}

impl DiskFile for FaultyFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        match self.plan.step() {
            None => self.inner.append(bytes),
            Some(Fault::ShortWrite) => {
                self.inner.append(&bytes[..bytes.len() / 2])?;
                Err(failure())
            }
            Some(_) => Err(failure()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.plan.check()?;
        self.inner.sync()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::disk::MemDisk;

    #[test]
    fn the_planned_operation_fails() {
        let disk = FaultyDisk::new(Arc::new(MemDisk::new()), Fault::ShortWrite, 2);
        let file = disk.create("a").unwrap();
        file.append(b"12").unwrap();
        assert!(file.append(b"3456").is_err());
        assert_eq!(file.len().unwrap(), 4);
        file.append(b"7").unwrap();
        disk.fail_next();
        assert!(file.sync().is_err());
    }

    #[test]
    fn forever_means_forever() {
        let disk = FaultyDisk::new(Arc::new(MemDisk::new()), Fault::Forever, 1);
        let file = disk.create("a").unwrap();
        for _ in 0..3 {
            assert!(file.append(b"1").is_err());
        }
    }
}
