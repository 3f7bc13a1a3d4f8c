//! Dotted paths, parsed once. What a path means when it meets an array differs between queries, expressions,
//! updates and projections, so each of those walks it in its own way.

use crate::error::{Code, Error, Result};

/// `a.b.0`: one or more names.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Path {
    text: Box<str>,
    parts: Box<[Part]>,
}

/// One name of a path, with its value as an array index if it can be one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Part {
    name: Box<str>,
    index: Option<usize>,
}

impl Path {
    /// Splits at the dots; empty names are kept (`a..b` has one), as MongoDB queries do.
    pub fn new(text: &str) -> Path {
        let parts = text.split('.').map(|name| Part { name: name.into(), index: parse_index(name) }).collect();
        Path { text: text.into(), parts }
    }

    /// As [`Path::new`], but refuses empty names, as updates and projections do.
    pub fn parse_strict(text: &str) -> Result<Path> {
        Path::check_strict(text)?;
        Ok(Path::new(text))
    }

    /// What [`Path::parse_strict`] refuses.
    pub fn check_strict(text: &str) -> Result<()> {
        if text.is_empty() {
            return Err(Error::new(Code::EmptyFieldName, "An empty update path is not valid."));
        }
        if text.split('.').any(str::is_empty) {
            return Err(Error::new(
                Code::EmptyFieldName,
                format!("The update path '{text}' contains an empty field name, which is not allowed."),
            ));
        }
        Ok(())
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub fn first(&self) -> &str {
        &self.parts[0].name
    }

    pub fn is_single(&self) -> bool {
        self.parts.len() == 1
    }

    /// True if this path is `other` or lies above it.
    pub fn is_prefix_of(&self, other: &Path) -> bool {
        self.parts.len() <= other.parts.len() && self.parts.iter().zip(&other.parts).all(|(a, b)| a.name == b.name)
    }
}

impl Part {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as an array index: digits without a leading zero.
    pub fn index(&self) -> Option<usize> {
        self.index
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse_index(name: &str) -> Option<usize> {
    let canonical = name == "0" || (!name.starts_with('0') && !name.is_empty());
    (canonical && name.len() <= 10 && name.bytes().all(|b| b.is_ascii_digit())).then(|| name.parse().ok()).flatten()
}
