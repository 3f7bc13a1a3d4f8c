//! What an expression reads of the root document, so that nothing else need be decoded or fetched.

use std::collections::BTreeSet;

/// The paths read, or everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deps {
    whole: bool,
    paths: BTreeSet<Box<str>>,
}

impl Deps {
    /// Everything: `$$ROOT` is read.
    pub fn whole() -> Deps {
        Deps { whole: true, paths: BTreeSet::new() }
    }

    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// True if the document is not read at all.
    pub fn is_none(&self) -> bool {
        !self.whole && self.paths.is_empty()
    }

    /// The paths read, sorted; `None` if the whole document is.
    pub fn paths(&self) -> Option<impl Iterator<Item = &str>> {
        (!self.whole).then(|| self.paths.iter().map(|p| &**p))
    }

    pub fn add(&mut self, path: &str) {
        if !self.whole && !self.paths.contains(path) {
            self.paths.insert(path.into());
        }
    }

    pub fn add_whole(&mut self) {
        self.whole = true;
        self.paths.clear();
    }

    pub fn merge(&mut self, other: &Deps) {
        if other.whole {
            self.add_whole();
        }
        other.paths.iter().for_each(|p| self.add(p));
    }
}
