//! `cargo xtask`: everything a developer runs besides the database itself.
fn main() {}
