//! A collection's validator, for layouts whose logical documents the store below never sees.

use espalier_query::expression::Deps;
use espalier_query::{Context, Filter};
use espalier_store::{Namespace, Transaction, ValidationAction, ValidationLevel};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

pub struct Validator {
    filter: Filter,
    moderate: bool,
}

impl Validator {
    /// The collection's validator, if it has one that refuses documents.
    pub fn of(at: &dyn Transaction, ns: &Namespace) -> Result<Option<Validator>> {
        let Some(info) = at.collection(ns)? else { return Ok(None) };
        let options = info.options;
        if options.validation_level == ValidationLevel::Off || options.validation_action == ValidationAction::Warn {
            return Ok(None);
        }
        match &options.validator {
            Some(doc) if !doc.is_empty() => {
                let filter = Filter::parse(doc.as_raw(), &Default::default())?;
                Ok(Some(Validator { filter, moderate: options.validation_level == ValidationLevel::Moderate }))
            }
            _ => Ok(None),
        }
    }

    /// What it reads of a document.
    pub fn dependencies(&self) -> Deps {
        self.filter.dependencies()
    }

    /// Refuses a document that breaks the rule. `before` is the one that an update replaces.
    pub fn check(&self, doc: RawDoc<'_>, before: Option<RawDoc<'_>>, context: &Context) -> Result<()> {
        if self.filter.matches(doc, context)? {
            return Ok(());
        }
        if self.moderate
            && let Some(before) = before
            && !self.filter.matches(before, context)?
        {
            return Ok(());
        }
        let mut info = DocBuf::new();
        info.append("errInfo", &self.filter.explain_failure(doc, context));
        Err(Error::new(Code::DocumentValidationFailure, "Document failed validation").with_info(info))
    }
}
