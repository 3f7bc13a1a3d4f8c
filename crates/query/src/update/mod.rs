//! Updates. Interim: the shape only.

/// A parsed update.
#[derive(Debug)]
pub struct Update {}
