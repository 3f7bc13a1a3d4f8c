//! Runs that are in no version any more. The last reader to let go of one only notes it here;
//! the background removes the file and the cached blocks.

use std::sync::{Arc, Mutex};

use super::file_name;
use crate::Result;
use crate::cache::{Cache, Slots};
use crate::disk::Disk;
use crate::error::KvError;
use crate::sync::lock;

struct Dead {
    id: u64,
    slots: Arc<Slots>,
}

#[derive(Default)]
pub(crate) struct Graveyard {
    dead: Mutex<Vec<Dead>>,
}

impl Graveyard {
    pub(super) fn add(&self, id: u64, slots: Arc<Slots>) {
        lock(&self.dead).push(Dead { id, slots });
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.dead).is_empty()
    }

    /// Removes the files. One that is left behind by a failure is removed at the next start.
    pub(crate) fn bury(&self, disk: &dyn Disk, cache: &Cache) -> Result<()> {
        let dead = std::mem::take(&mut *lock(&self.dead));
        let mut result = Ok(());
        for run in dead {
            cache.forget(&run.slots);
            let name = file_name(run.id);
            if let Err(error) = disk.remove(&name) {
                result = Err(KvError::io(&disk.path(&name), "remove", error));
            }
        }
        result
    }
}
