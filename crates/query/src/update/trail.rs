//! The way taken from the document's root to a value: a list on the stack, read only by error messages and by
//! `$rename`, so that a walk allocates nothing for it.

use std::fmt::Write as _;

/// One step and what lies above it.
#[derive(Clone, Copy)]
pub(super) struct Trail<'p> {
    parent: Option<&'p Trail<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    Root,
    /// A field of a document.
    Name(&'p str),
    /// An element of an array.
    Index(usize),
}

impl<'p> Trail<'p> {
    pub const ROOT: Trail<'static> = Trail { parent: None, step: Step::Root };

    pub fn then(&'p self, step: Step<'p>) -> Trail<'p> {
        Trail { parent: Some(self), step }
    }

    pub fn is_top_level(&self) -> bool {
        self.parent.is_some_and(|p| p.parent.is_none())
    }

    pub fn depth(&self) -> usize {
        self.parent.map_or(0, |p| p.depth() + 1)
    }

    /// The last step's name.
    pub fn name(&self) -> String {
        match self.step {
            Step::Root => String::new(),
            Step::Name(name) => name.to_string(),
            Step::Index(index) => index.to_string(),
        }
    }

    /// `a.0.b`
    pub fn dotted(&self) -> String {
        let mut text = match self.parent {
            Some(parent) if parent.parent.is_some() => format!("{}.", parent.dotted()),
            _ => String::new(),
        };
        match self.step {
            Step::Root => {}
            Step::Name(name) => text.push_str(name),
            Step::Index(index) => {
                let _ = write!(text, "{index}");
            }
        }
        text
    }

    /// Calls `visit` for every step, from the root on.
    pub fn each(&self, visit: &mut dyn FnMut(Step<'_>)) {
        if let Some(parent) = self.parent {
            parent.each(visit);
        }
        visit(self.step);
    }

    /// The name of the innermost array that the way leads through, if any.
    pub fn array_above(&self) -> Option<String> {
        let parent = self.parent?;
        match self.step {
            Step::Index(_) => Some(parent.name()),
            _ => parent.array_above(),
        }
    }
}
