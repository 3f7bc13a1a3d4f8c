//! `collStats` and `validate` of patterned collections.

use std::collections::HashSet;

use espalier_store::{CollStats, Namespace};
use espalier_value::{ArrayBuf, DocBuf, Result, Value, ValueRef};

use crate::derive;
use crate::layout::Checked;
use crate::roles::Roles;
use crate::txn::PatternedTxn;

impl PatternedTxn {
    pub(crate) fn stats(&self, ns: &Namespace) -> Result<CollStats> {
        let Some(roles) = Roles::of(&*self.below, ns)? else { return self.below.coll_stats(ns) };
        let (mut stats, mut health) = match &roles.layout {
            Some(layout) => (layout.coll_stats(&*self.below, ns)?, layout.health(&*self.below, ns)?),
            None => (self.below.coll_stats(ns)?, DocBuf::new()),
        };
        if let Some(run) = self.shared.jobs.schedule.last(ns) {
            health.append("lastRun", &run);
        }
        if !roles.derived.is_empty() {
            let mut all = ArrayBuf::new();
            for derivation in &roles.derived {
                let mut own = derivation.health(&*self.below, ns)?;
                if derivation.within().is_some() {
                    let lag = self.shared.worker.lag(ns);
                    own.append("lagMillis", lag.map_or(-1, |lag| lag.as_millis() as i64));
                }
                all.push_doc(|doc| {
                    doc.append(derivation.kind(), &own);
                });
            }
            health.append("derivations", &all);
        }
        stats.patterns = (roles.layout.is_some() || !roles.derived.is_empty()).then_some(health);
        Ok(stats)
    }

    fn check(&self, ns: &Namespace, roles: &Roles) -> Result<Checked> {
        let context = &self.begin.context;
        let mut found = match &roles.layout {
            Some(layout) => layout.check(&*self.below, ns, context)?,
            None => Checked { documents: self.below.coll_stats(ns)?.count, violations: Vec::new() },
        };
        for derivation in &roles.derived {
            let dirty = match derivation.within() {
                Some(_) => derive::delayed::dirty(&self.shared, &*self.below, ns, &**derivation, context)?,
                None => Some(HashSet::new()),
            };
            // All of it is on its way.
            let Some(dirty) = dirty else { continue };
            derive::check(&**derivation, &*self.below, ns, context, &dirty, &mut found)?;
        }
        Ok(found)
    }

    /// The report on a name that stands for a part of a collection: its documents are checked, and the indexes with those of
    /// the whole.
    pub(crate) fn check_part(&mut self, ns: &Namespace, physical: &Namespace) -> Result<DocBuf> {
        let Some(roles) = Roles::of(&*self.below, ns)? else { return Ok(DocBuf::new()) };
        let stats = self.stats(ns)?;
        let indexes = roles.layout.as_ref().map(|layout| layout.indexes(&*self.below, ns)).transpose()?;
        let not_here = format!("{ns} is a part of {physical}: validate that to check its indexes");
        let mut warnings = ArrayBuf::new();
        warnings.push(not_here.as_str());
        let mut report = DocBuf::new();
        report
            .append("ns", &ns.to_string())
            .append("nInvalidDocuments", 0)
            .append("nNonCompliantDocuments", 0)
            .append("nrecords", stats.count as i64)
            .append("nIndexes", indexes.unwrap_or_default().len() as i32)
            .append("valid", true)
            .append("repaired", false)
            .append("warnings", &warnings)
            .append("errors", &ArrayBuf::new());
        self.check_patterns(ns, &roles, report, false)
    }

    /// Adds what the patterns' checks found to the store's own report; mends it if asked to.
    pub(crate) fn check_patterns(
        &mut self,
        ns: &Namespace,
        roles: &Roles,
        report: DocBuf,
        repair: bool,
    ) -> Result<DocBuf> {
        let mut found = self.check(ns, roles)?;
        let mut repaired = 0i64;
        if repair && !found.violations.is_empty() {
            let ids: Vec<Value<'static>> = found.violations.iter().map(|(_, id)| id.clone()).collect();
            for id in &ids {
                self.repair_one(ns, id.or_null())?;
            }
            self.renew()?;
            found = self.check(ns, roles)?;
            // Some cannot be mended, and are found again.
            repaired = ids.len().saturating_sub(found.violations.len()) as i64;
        }
        let clean = found.violations.is_empty();
        let mut out = DocBuf::new();
        for elem in report.as_raw() {
            match (elem.name(), elem.value()) {
                ("valid", ValueRef::Bool(valid)) => out.append("valid", valid && clean),
                ("repaired", ValueRef::Bool(done)) => out.append("repaired", done || repaired > 0),
                ("errors", ValueRef::Array(errors)) => {
                    let mut all: ArrayBuf = errors.iter().collect();
                    found.violations.iter().for_each(|(text, _)| {
                        all.push(text.as_str());
                    });
                    out.append("errors", &all)
                }
                _ => out.append_elem(elem),
            };
        }
        out.append_doc("patterns", |doc| {
            doc.append("checked", found.documents as i64)
                .append("violations", found.violations.len() as i64)
                .append("repaired", repaired);
        });
        Ok(out)
    }
}
