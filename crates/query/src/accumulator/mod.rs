//! Placeholder; filled in by the next commits.
