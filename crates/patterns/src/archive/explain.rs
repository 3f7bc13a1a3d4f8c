//! What `explain` says about a find: which collections it reads, and how the archive is read.

use espalier_store::{Find, Namespace, Transaction, Verbosity};
use espalier_value::{DocBuf, Result, ValueRef};

use super::Archive;
use crate::shown::figures;

impl Archive {
    pub(super) fn explain_seen(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        find: &Find,
        verbosity: Verbosity,
    ) -> Result<DocBuf> {
        let mut out = at.explain(ns, find, verbosity)?;
        let mut about = DocBuf::new();
        about.append("into", &*self.into);
        if self.sees_archive(find) {
            about.append("reads", if find.sort.is_some() { "both, merged by the sort" } else { "both" });
            let archive = at.explain(&self.archive(ns), find, verbosity)?;
            for name in ["queryPlanner", "executionStats"] {
                if let Some(ValueRef::Document(part)) = archive.as_raw().get(name) {
                    about.append(name, part);
                }
            }
            figures(&mut about, verbosity, || self.find_seen(at, ns, find))?;
        } else {
            about.append("reads", "the active documents only");
        }
        out.append_doc("patterns", |doc| {
            doc.append("archive", &about);
        });
        Ok(out)
    }
}
