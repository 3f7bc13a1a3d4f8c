//! Arrays that grow with their group: how much one may hold.

use espalier_value::{Code, Error, Result};

/// MongoDB's limit for one `$push` or `$addToSet`.
pub(super) const BYTES_MAX: usize = 100 * 1024 * 1024;

pub(super) fn check(operator: &str, bytes: usize) -> Result<()> {
    if bytes <= BYTES_MAX {
        return Ok(());
    }
    let message = format!("{operator} used too much memory and cannot spill to disk. Memory limit: {BYTES_MAX} bytes");
    Err(Error::new(Code::ExceededMemoryLimit, message))
}
