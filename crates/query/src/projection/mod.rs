//! Projections: which fields of a document a client gets. Interim: the shape only.

/// A parsed projection.
#[derive(Debug)]
pub struct Projection {}
