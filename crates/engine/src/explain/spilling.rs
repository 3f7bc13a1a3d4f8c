//! Counts how often a sort goes to disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use espalier_query::stage::{Run, Spill, SpillFile};
use espalier_value::Result;

#[derive(Debug)]
pub struct Watched {
    spill: Arc<dyn Spill>,
    files: Arc<Files>,
}

/// The files that were made.
#[derive(Debug, Default)]
pub struct Files(AtomicU64);

impl Files {
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Watched {
    /// Has a run's files counted.
    pub fn wrap(run: &mut Run) -> Arc<Files> {
        let files = Arc::new(Files::default());
        run.spill = run.spill.take().map(|spill| Arc::new(Watched { spill, files: files.clone() }) as Arc<dyn Spill>);
        files
    }
}

impl Spill for Watched {
    fn create(&self) -> Result<Box<dyn SpillFile>> {
        self.files.0.fetch_add(1, Ordering::Relaxed);
        self.spill.create()
    }
}
