//! The in-memory twin of a folder, which knows what a power cut would leave behind.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::{Disk, DiskFile, DiskLock};
use crate::rng::Rng;
use crate::sync::lock;

type Names = BTreeMap<String, Arc<MemFile>>;

#[derive(Default)]
struct Folder {
    current: Names,
    /// What the folder's entries were at the last `sync_dir`.
    synced: Names,
}

/// A folder in memory. `crash` gives the folder that a power cut could have left.
#[derive(Default)]
pub struct MemDisk {
    folder: Mutex<Folder>,
    locked: Arc<AtomicBool>,
    syncs: Arc<AtomicU64>,
}

impl MemDisk {
    pub fn new() -> MemDisk {
        MemDisk::default()
    }

    /// How often a file was synced.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// What is left after a power cut: synced bytes of files whose names were synced, and of
    /// everything else an arbitrary part, chosen by the seed. Unsynced bytes may be cut
    /// anywhere, and pages before the cut may be missing (disks reorder writes).
    pub fn crash(&self, seed: u64) -> MemDisk {
        let mut rng = Rng::new(seed);
        let folder = lock(&self.folder);
        let names: BTreeSet<&String> = folder.current.keys().chain(folder.synced.keys()).collect();
        let mut left = Names::new();
        for name in names {
            let (now, then) = (folder.current.get(name), folder.synced.get(name));
            let file = if rng.below(2) == 0 { now } else { then };
            if let Some(file) = file {
                left.insert(name.clone(), Arc::new(file.torn(&mut rng, &self.syncs)));
            }
        }
        let syncs = Arc::new(AtomicU64::new(0));
        MemDisk { folder: Mutex::new(Folder { synced: left.clone(), current: left }), locked: Arc::default(), syncs }
    }

    /// Flips bits of one byte, as a failing disk would.
    pub fn damage(&self, name: &str, offset: u64, mask: u8) {
        if let Some(file) = lock(&self.folder).current.get(name)
            && let Ok(offset) = usize::try_from(offset)
            && let Some(byte) = lock(&file.data).bytes.get_mut(offset)
        {
            *byte ^= mask;
        }
    }
}

impl Disk for MemDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = Arc::new(MemFile { data: Mutex::default(), syncs: self.syncs.clone() });
        lock(&self.folder).current.insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        match lock(&self.folder).current.get(name) {
            Some(file) => Ok(file.clone()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let names = &mut lock(&self.folder).current;
        let file = names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match lock(&self.folder).current.remove(name) {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.folder).current.keys().cloned().collect())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let folder = &mut *lock(&self.folder);
        folder.synced = folder.current.clone();
        Ok(())
    }

    fn lock(&self) -> io::Result<Option<DiskLock>> {
        if self.locked.swap(true, Ordering::AcqRel) {
            return Ok(None);
        }
        Ok(Some(Box::new(MemLock(self.locked.clone()))))
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("memory").join(name)
    }
}

struct MemLock(Arc<AtomicBool>);

impl Drop for MemLock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[derive(Default)]
struct Data {
    bytes: Vec<u8>,
    synced: usize,
}

struct MemFile {
    data: Mutex<Data>,
    syncs: Arc<AtomicU64>,
}

impl MemFile {
    fn torn(&self, rng: &mut Rng, syncs: &Arc<AtomicU64>) -> MemFile {
        const PAGE: usize = 64;
        let data = lock(&self.data);
        let unsynced = data.bytes.len() - data.synced;
        let kept = data.synced + rng.below(unsynced as u64 + 1) as usize;
        let mut bytes = data.bytes[..kept].to_vec();
        for page in bytes[data.synced..].chunks_mut(PAGE) {
            if rng.below(16) == 0 {
                page.fill(0);
            }
        }
        MemFile { data: Mutex::new(Data { synced: bytes.len(), bytes }), syncs: syncs.clone() }
    }
}

impl DiskFile for MemFile {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        lock(&self.data).bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        let mut data = lock(&self.data);
        data.synced = data.bytes.len();
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let data = lock(&self.data);
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let source = data.bytes.get(from..from.saturating_add(buffer.len())).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(source);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.data).bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_crash_keeps_what_was_synced() {
        for seed in 0..50 {
            let disk = MemDisk::new();
            let file = disk.create("a").unwrap();
            file.append(b"safe").unwrap();
            file.sync().unwrap();
            disk.sync_dir().unwrap();
            file.append(&[7; 1000]).unwrap();
            disk.create("b").unwrap();
            let after = disk.crash(seed);
            let file = after.open("a").unwrap();
            let mut bytes = [0; 4];
            file.read_at(0, &mut bytes).unwrap();
            assert_eq!(&bytes, b"safe");
            assert!(file.len().unwrap() <= 1004);
        }
    }

    #[test]
    fn an_unsynced_name_may_vanish_or_stay() {
        let disk = MemDisk::new();
        disk.create("a").unwrap();
        let kept = (0..64).filter(|&seed| disk.crash(seed).open("a").is_ok()).count();
        assert!((1..64).contains(&kept), "{kept}");
    }
}
