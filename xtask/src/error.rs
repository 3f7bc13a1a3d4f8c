//! The one error of the developer's tools: a message for a person, with what was being done in front of it.

use std::fmt;

/// What went wrong, in words.
#[derive(Debug)]
pub struct Error(pub String);

impl Error {
    /// Everything has been said already; the command only has to fail.
    pub fn reported() -> Error {
        Error(String::new())
    }
}

/// A result whose error is for a person to read.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Error(error.to_string())
    }
}

/// Puts what was being done in front of an error.
pub trait Context<T> {
    fn context(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Error(format!("{what}: {}", error.into())))
    }
}

macro_rules! err {
    ($($argument:tt)*) => { $crate::error::Error(format!($($argument)*)) };
}
pub(crate) use err;
