//! What `explain` says about a find: how the buckets are found, and what is done with their readings.

use espalier_query::Stream;
use espalier_store::{Cursor, Find, Namespace, Transaction, Verbosity};
use espalier_value::{DocBuf, Result};

use super::Bucket;

impl Bucket {
    pub(super) fn explain_logical(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        find: &Find,
        verbosity: Verbosity,
    ) -> Result<DocBuf> {
        let plan = self.plan_find(at, ns, find)?;
        let mut out = at.explain(&self.buckets(ns), &plan.buckets, verbosity)?;
        let mut about = DocBuf::new();
        about
            .append("bucketsIn", &*self.into)
            .append("bucketsSearchedFor", plan.buckets.filter.source())
            .append("plainDocuments", plan.plain.is_some())
            .append("filterOnReadings", !find.filter.is_empty());
        let sort = match (&find.sort, plan.by_window) {
            (None, _) => "none",
            (Some(_), true) => "one window after the other",
            (Some(_), false) => "all readings",
        };
        about.append("sort", sort);
        let grouped = self.find_grouped(at, ns, find)?;
        if find.group.is_some() {
            about.append("groupFrom", if grouped.is_some() { "stats" } else { "readings" });
        }
        if verbosity != Verbosity::QueryPlanner
            && let Some(mut cursor) = grouped
        {
            cursor.lend_partials();
            let mut returned = 0i64;
            while cursor.advance()? {
                returned += 1;
            }
            about
                .append("wholeBuckets", cursor.whole as i64)
                .append("edgeBuckets", cursor.edge as i64)
                .append("readingsRead", returned - cursor.whole as i64)
                .append("bucketsRead", cursor.docs_examined() as i64)
                .append("totalKeysExamined", cursor.keys_examined() as i64)
                .append("totalDocsExamined", cursor.docs_examined() as i64);
        } else if verbosity != Verbosity::QueryPlanner {
            let mut cursor = self.find_logical(at, ns, find)?;
            let mut returned = 0i64;
            while cursor.advance()? {
                returned += 1;
            }
            about
                .append("nReturned", returned)
                .append("bucketsRead", cursor.docs_examined() as i64)
                .append("totalKeysExamined", cursor.keys_examined() as i64)
                .append("totalDocsExamined", cursor.docs_examined() as i64);
        }
        out.append_doc("patterns", |doc| {
            doc.append("bucket", &about);
        });
        Ok(out)
    }
}
