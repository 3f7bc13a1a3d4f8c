//! What `explain` says about a find: how the stored documents are found, and what is done about increments that wait.

use espalier_store::{Find, Namespace, Transaction, Verbosity};
use espalier_value::{DocBuf, Result};

use super::find::Plan;
use super::{Approximate, Read};
use crate::shown::figures;

impl Approximate {
    pub(super) fn explain_seen(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        find: &Find,
        verbosity: Verbosity,
    ) -> Result<DocBuf> {
        let mut about = DocBuf::new();
        about.append_array("fields", |list| {
            self.counters.0.iter().for_each(|path| {
                list.push(path.as_str());
            });
        });
        about.append("pendingIn", &*self.into);
        let plan = match self.read {
            Read::Exact => self.plan(at, ns, find)?,
            Read::Flushed => Plan::Stored(find.clone()),
        };
        let mut merged_with = None;
        let stored = match plan {
            Plan::Stored(stored) => {
                about.append("reads", "the stored documents only");
                stored
            }
            Plan::Overlaid { stored, rest, rows } => {
                about.append("reads", "the stored documents, and the pending one of each that is shown");
                if let Some(rows) = rows {
                    about.append("pendingDocuments", rows.len() as i64);
                }
                about.append("filterOnLogicalDocument", rest.filter.is_some());
                about.append("sortOnLogicalDocument", rest.sort.is_some());
                stored
            }
            Plan::Merged { stored, others, rows } => {
                about
                    .append("reads", "the stored documents without a pending one, merged with the others by the sort")
                    .append("pendingDocuments", rows.len() as i64);
                merged_with = Some(others);
                stored
            }
        };
        let mut out = at.explain(ns, &stored, verbosity)?;
        if let Some(others) = merged_with
            && let Some(planner) = at.explain(ns, &others, Verbosity::QueryPlanner)?.as_raw().get_doc("queryPlanner")
        {
            about.append("mergedWith", planner);
        }
        figures(&mut about, verbosity, || self.find_seen(at, ns, find))?;
        out.append_doc("patterns", |doc| {
            doc.append("approximate", &about);
        });
        Ok(out)
    }
}
