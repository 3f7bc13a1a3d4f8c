//! What `explain` says about a find: how the main documents are found, and what the pattern does to them.

use espalier_store::{Find, Namespace, Transaction, Verbosity};
use espalier_value::{DocBuf, Result};

use super::Outlier;
use super::needs::Needs;
use crate::shown::figures;

impl Outlier {
    pub(super) fn explain_logical(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        find: &Find,
        verbosity: Verbosity,
    ) -> Result<DocBuf> {
        let plan = self.plan_find(at, ns, find)?;
        let mut out = at.explain(ns, &plan.stored, verbosity)?;
        let mut about = DocBuf::new();
        about.append("array", self.array.as_str()).append("batchesIn", &*self.into);
        match &plan.needs {
            Needs::Stored => about.append("reads", "the main document only"),
            Needs::Whole { .. } => about.append("reads", "every batch of each document"),
            Needs::Page { page, .. } => about.append("reads", "the batches of one page").append_doc("page", |doc| {
                doc.append("skip", page.skip).append("limit", page.limit as i64);
            }),
        };
        if let Some(condition) = &plan.candidates {
            about.append("batchesSearchedFor", condition);
        }
        about.append("filterOnLogicalDocument", plan.rest.filter.is_some());
        about.append("sortOnLogicalDocument", plan.rest.sort.is_some());
        figures(&mut about, verbosity, || self.find_logical(at, ns, find))?;
        out.append_doc("patterns", |doc| {
            doc.append("outlier", &about);
        });
        Ok(out)
    }
}
