//! Names that are in scope while parsing. A name is resolved to a slot once, so that evaluation looks nothing up.

use std::sync::{Arc, Mutex};

use espalier_value::{Code, Collation, Collator, Error, Result};

use crate::context::Context;

/// The command's `let`, then the variables of enclosing `$let`, `$map`, ….
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Names of [`Context::lets`], in its order.
    lets: Vec<Box<str>>,
    /// Names that operators bind, outermost first: the slots of [`super::Env`].
    names: Vec<Box<str>>,
    early: Early,
    /// How what is parsed here compares strings.
    collation: Option<Arc<Collation>>,
}

/// Constant parts are evaluated when an expression is parsed. MongoDB does so only after the whole command has been
/// parsed: what fails waits here until then.
#[derive(Debug, Clone, Default)]
struct Early {
    /// Nothing is evaluated early below an operator that MongoDB does not optimize.
    is_off: bool,
    error: Arc<Mutex<Option<Error>>>,
}

/// Where a variable's value is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the command's `let`.
    Let(usize),
    Slot(usize),
}

impl Scope {
    /// The scope of a command whose context carries these `let` variables.
    pub fn of(context: &Context) -> Scope {
        Scope::of_names(context.lets.iter().map(|(name, _)| &**name)).collated(context.collation.clone())
    }

    /// The scope of a context whose `lets` will have these names in this order.
    pub fn of_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Scope {
        Scope { lets: names.into_iter().map(Into::into).collect(), ..Scope::default() }
    }

    /// This scope with another collation.
    pub fn collated(self, collation: Option<Arc<Collation>>) -> Scope {
        Scope { collation, ..self }
    }

    pub fn collation(&self) -> &Option<Arc<Collation>> {
        &self.collation
    }

    pub fn collator(&self) -> Collator<'_> {
        Collator::of(&self.collation)
    }

    /// This scope and one more variable, which hides an older one of its name.
    pub fn with(&self, name: &str) -> Scope {
        let mut inner = self.clone();
        inner.names.push(name.into());
        inner
    }

    /// The scope of a pipeline inside a stage whose `let` defines these names, to be run in
    /// [`Context::with_lets`].
    pub fn with_lets<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Scope {
        let lets = self.lets.iter().cloned().chain(names.into_iter().map(Into::into)).collect();
        Scope { lets, ..self.clone() }
    }

    /// This scope as if nobody had defined these names: what can be parsed in it does not use them.
    pub fn hiding(&self, names: &[&str]) -> Scope {
        let kept = |all: &[Box<str>]| all.iter().filter(|name| !names.contains(&&***name)).cloned().collect();
        Scope { lets: kept(&self.lets), names: kept(&self.names), ..self.apart() }
    }

    /// This scope for something that is evaluated early only when it is run: its errors wait apart.
    pub fn apart(&self) -> Scope {
        let early = Early { is_off: self.early.is_off, error: Arc::default() };
        Scope { early, ..self.clone() }
    }

    /// This scope for operands that are not evaluated early.
    pub(super) fn without_early(&self) -> Scope {
        Scope { early: Early { is_off: true, ..self.early.clone() }, ..self.clone() }
    }

    pub(super) fn evaluates_early(&self) -> bool {
        !self.early.is_off
    }

    /// Notes what failed early; the first counts.
    pub(crate) fn defer(&self, error: Error) {
        if self.evaluates_early()
            && let Ok(mut first) = self.early.error.lock()
        {
            first.get_or_insert(error);
        }
    }

    /// To be called when everything is parsed: fails if something failed early.
    pub(crate) fn settle(&self) -> Result<()> {
        let failed = self.early.error.lock().ok().and_then(|mut first| first.take());
        failed.map_or(Ok(()), Err)
    }

    pub(super) fn find(&self, name: &str) -> Option<Place> {
        let last = |names: &[Box<str>]| names.iter().rposition(|n| &**n == name);
        last(&self.names).map(Place::Slot).or_else(|| last(&self.lets).map(Place::Let))
    }
}

/// A name that may be defined by `$let`, `$map`, `let`, …: it starts with a lower-case letter, or is CURRENT.
pub fn validate_name_to_define(name: &str) -> Result<()> {
    if name == "CURRENT" {
        return Ok(());
    }
    validate(name, |c| c.is_ascii_lowercase() || !c.is_ascii())
}

/// A name that may stand after `$$`.
pub(super) fn validate_name_to_read(name: &str) -> Result<()> {
    validate(name, |c| c.is_ascii_alphabetic() || !c.is_ascii())
}

fn validate(name: &str, may_start: fn(char) -> bool) -> Result<()> {
    let Some(first) = name.chars().next() else {
        return Err(Error::failed_to_parse("empty variable names are not allowed"));
    };
    if !may_start(first) {
        let message = format!("'{name}' starts with an invalid character for a user variable name");
        return Err(Error::new(Code::FailedToParse, message));
    }
    match name.chars().find(|c| c.is_ascii() && !c.is_ascii_alphanumeric() && *c != '_') {
        None => Ok(()),
        Some(c) => {
            Err(Error::failed_to_parse(format!("'{name}' contains an invalid character for a variable name: '{c}'")))
        }
    }
}
