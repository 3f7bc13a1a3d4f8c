//! After a write or sync has failed nobody knows what is on the disk, and trying again could
//! acknowledge what is lost. So the first failure stops all writing until a restart.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sync::lock;
use crate::{KvError, Result};

#[derive(Default)]
pub(crate) struct Poison {
    is_set: AtomicBool,
    reason: Mutex<Option<String>>,
}

impl Poison {
    pub(crate) fn set(&self, cause: &KvError) {
        let mut reason = lock(&self.reason);
        // The first failure is the cause; later ones are its consequences.
        reason.get_or_insert_with(|| cause.to_string());
        self.is_set.store(true, Ordering::Release);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() {
            return Err(self.error());
        }
        Ok(())
    }

    #[cold]
    fn error(&self) -> KvError {
        let reason = lock(&self.reason).clone().unwrap_or_default();
        KvError::Poisoned { reason }
    }
}
