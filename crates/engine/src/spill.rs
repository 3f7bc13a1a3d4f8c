//! Temporary files for what does not fit into memory: unlinked as soon as they are open, so that nothing is left
//! behind whatever happens.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use espalier_query::stage::{Spill, SpillFile};
use espalier_value::{Code, Error, Result};

/// A folder inside the data folder.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
    next: AtomicU64,
}

impl TempFolder {
    /// Empties the folder: what an earlier process left there is of no use.
    pub fn open(data: &Path) -> Result<TempFolder> {
        let path = data.join("tmp");
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(|e| failed("create the folder for temporary files", &e))?;
        Ok(TempFolder { path, next: AtomicU64::new(0) })
    }
}

impl Spill for TempFolder {
    fn create(&self) -> Result<Box<dyn SpillFile>> {
        let path = self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(|e| failed("create a temporary file", &e))?;
        let _ = fs::remove_file(&path);
        Ok(Box::new(TempFile { state: Some(State::Writing(BufWriter::with_capacity(BUFFER_BYTES, file))) }))
    }
}

const BUFFER_BYTES: usize = 64 << 10;

struct TempFile {
    /// `None` only while it changes over, or after that failed.
    state: Option<State>,
}

enum State {
    Writing(BufWriter<File>),
    Reading(BufReader<File>),
}

impl SpillFile for TempFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.state {
            Some(State::Writing(file)) => file.write_all(bytes).map_err(|e| failed("write a temporary file", &e)),
            _ => Err(Error::internal("a temporary file was written after it was rewound")),
        }
    }

    fn rewind(&mut self) -> Result<()> {
        let mut file = match self.state.take() {
            Some(State::Writing(file)) => file.into_inner().map_err(|e| failed("write a temporary file", e.error()))?,
            Some(State::Reading(file)) => file.into_inner(),
            None => return Err(Error::internal("a temporary file was used after a failure")),
        };
        file.seek(SeekFrom::Start(0)).map_err(|e| failed("read a temporary file", &e))?;
        self.state = Some(State::Reading(BufReader::with_capacity(BUFFER_BYTES, file)));
        Ok(())
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        match &mut self.state {
            Some(State::Reading(file)) => file.read(out).map_err(|e| failed("read a temporary file", &e)),
            _ => Err(Error::internal("a temporary file was read before it was rewound")),
        }
    }
}

fn failed(what: &str, error: &std::io::Error) -> Error {
    let code = if error.kind() == std::io::ErrorKind::StorageFull { Code::OutOfDiskSpace } else { Code::InternalError };
    Error::new(code, format!("cannot {what}: {error}"))
}
