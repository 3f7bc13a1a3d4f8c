//! What every family's list is made of: a name, a state and its documentation, so that the compatibility table can
//! be generated from the code.

/// Whether an operator, stage or command can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Supported,
    /// MongoDB has it, Espalier does not yet: using it is an error that says so by name.
    KnownUnsupported,
}

/// One line of the compatibility table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub name: &'static str,
    pub state: State,
    /// One sentence.
    pub doc: &'static str,
}
