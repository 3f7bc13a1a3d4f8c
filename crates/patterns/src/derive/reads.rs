//! Which part of a source's documents a derivation looks at.

use espalier_query::expression::Deps;
use espalier_value::RawDoc;

/// Fields at the top of a document; `None` is all of it.
#[derive(Clone, Debug)]
pub(crate) struct Reads(Option<Vec<Box<str>>>);

impl Reads {
    pub fn of(names: impl Iterator<Item = Box<str>>) -> Reads {
        Reads(Some(names.collect()))
    }

    pub fn add(&mut self, deps: &Deps) {
        match deps.paths() {
            Some(paths) => paths.for_each(|path| self.add_name(path.split('.').next().unwrap_or(path))),
            None => self.add_all(),
        }
    }

    pub fn add_all(&mut self) {
        self.0 = None;
    }

    pub fn add_name(&mut self, name: &str) {
        if let Some(names) = &mut self.0
            && !names.iter().any(|known| **known == *name)
        {
            names.push(name.into());
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|known| **known == *name))
    }

    /// Whether it looks at a field of which this is true.
    pub fn any(&self, is: impl Fn(&str) -> bool) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|name| is(name)))
    }

    /// Whether two versions of a document differ in what it looks at.
    pub fn differ(&self, before: RawDoc<'_>, after: RawDoc<'_>) -> bool {
        let raw = |doc: RawDoc<'_>, name: &str| doc.elem(name).map(|elem| elem.raw().to_vec());
        match &self.0 {
            None => before.as_bytes() != after.as_bytes(),
            Some(names) => names.iter().any(|name| raw(before, name) != raw(after, name)),
        }
    }
}
