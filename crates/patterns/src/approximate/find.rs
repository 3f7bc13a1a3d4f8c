//! Reading. What does not look at the counters is left to the store, and so is everything with `read: "flushed"`, or while
//! nothing is pending.
//!
//! A condition on a counter is met by the stored value, or the document has increments waiting; the whole filter then
//! decides on the document with its increments. A sort by a counter merges the stored documents that have none waiting, in
//! the order of an index if there is one, with the few others.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_query::stage::Run;
use espalier_store::{Cursor, Find, Hint, Namespace, Transaction};
use espalier_value::{ArrayBuf, DocBuf, Path, Result, Value};

use super::merge::merge;
use super::overlay::{Overlay, Rows};
use super::{Approximate, Read};
use crate::cursor::{Rest, logical, refuse_physical};

/// How a find on logical documents is done.
pub enum Plan {
    /// By the store alone.
    Stored(Find),
    /// The increments are laid over what the store finds.
    Overlaid { stored: Find, rest: Box<Rest>, rows: Option<Arc<Rows>> },
    /// Stored documents that have none waiting, merged with the others.
    Merged { stored: Find, others: Find, rows: Arc<Rows> },
}

impl Approximate {
    pub(super) fn find_logical(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        match self.plan(at, ns, find)? {
            Plan::Stored(stored) => at.find(ns, &stored),
            Plan::Overlaid { stored, rest, rows } => {
                let overlay = Overlay::new(at.reader(), self.pending(ns), rows);
                Ok(Box::new(logical(at.find(ns, &stored)?, Box::new(overlay), *rest)))
            }
            Plan::Merged { stored, others, rows } => {
                let overlay = Overlay::new(at.reader(), self.pending(ns), Some(rows.clone()));
                let mut rest = rest(find);
                rest.filter = Some(find.filter.clone());
                rest.sort = find.sort.clone();
                let others = logical(at.find(ns, &others)?, Box::new(overlay), rest);
                Ok(Box::new(merge(at.find(ns, &stored)?, Box::new(others), rows, find)))
            }
        }
    }

    pub(super) fn find_seen(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        match self.read {
            Read::Exact => self.find_logical(at, ns, find),
            Read::Flushed => at.find(ns, find),
        }
    }

    pub(super) fn plan(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Plan> {
        refuse_physical(
            find,
            "approximate",
            "whose counters are put together with increments that wait; pass rawData: true to read the stored documents",
        )?;
        let filter_reads = self.counters.are_read(&find.filter.dependencies());
        let sort_reads =
            find.sort.as_ref().is_some_and(|sort| sort.fields().iter().any(|field| self.counters.overlap(&field.path)));
        if !filter_reads && !sort_reads {
            if !self.shows(find) {
                return Ok(Plan::Stored(find.clone()));
            }
            let (mut stored, mut rest) = (find.clone(), rest(find));
            stored.needs = None;
            rest.projection = stored.projection.take();
            return Ok(Plan::Overlaid { stored, rest: Box::new(rest), rows: None });
        }
        let rows = self.rows(at, ns)?;
        if rows.as_ref().is_some_and(|rows| rows.is_empty()) {
            return Ok(Plan::Stored(find.clone()));
        }
        let mut stored = Find { needs: None, projection: None, skip: 0, limit: None, ..find.clone() };
        if let (Some(rows), true) = (&rows, sort_reads) {
            let mut others = Find { sort: None, hint: None, ..stored.clone() };
            others.filter = by_ids(&rows.ids())?;
            // Of those that come first, all the others may have increments waiting.
            let most = find.limit.map(|limit| limit.saturating_add(find.skip).saturating_add(rows.len() as u64));
            stored.limit = most;
            return Ok(Plan::Merged { stored, others, rows: rows.clone() });
        }
        let mut rest = rest(find);
        (rest.skip, rest.limit, rest.projection) = (find.skip, find.limit, find.projection.clone());
        rest.filter = Some(find.filter.clone());
        stored.filter = self.candidates(find, rows.as_deref())?;
        if sort_reads {
            rest.sort = stored.sort.take();
        }
        stored.hint = self.usable_hint(at, ns, find)?;
        Ok(Plan::Overlaid { stored, rest: Box::new(rest), rows })
    }

    /// Whether the results have counters in them.
    fn shows(&self, find: &Find) -> bool {
        match (&find.needs, &find.projection) {
            (Some(paths), None) => paths.iter().any(|path| self.counters.overlap(&Path::new(path))),
            (_, None) => true,
            (_, Some(projection)) if projection.is_simple_exclusion() => {
                let excluded = |own: &Path| projection.source().iter().any(|e| Path::new(e.name()).is_prefix_of(own));
                !self.counters.0.iter().all(excluded)
            }
            (_, Some(projection)) => projection.is_exclusion() || self.counters.are_read(&projection.dependencies()),
        }
    }

    /// The filter for the stored documents that can match.
    fn candidates(&self, find: &Find, rows: Option<&Rows>) -> Result<Arc<Filter>> {
        let scope = Scope::of(&find.context);
        let ids = rows.map(Rows::ids);
        let mut all = ArrayBuf::new();
        for elem in find.filter.source() {
            let mut one = DocBuf::new();
            one.append_elem(elem);
            let reads = self.counters.are_read(&Filter::parse(one.as_raw(), &scope)?.dependencies());
            match &ids {
                // It searches text, whatever it says it reads, and must stand by itself.
                _ if elem.name() == "$text" => all.push(one.as_raw()),
                _ if !reads => all.push(one.as_raw()),
                Some(ids) => all.push_doc(|doc| {
                    doc.append_array("$or", |list| {
                        list.push(one.as_raw());
                        list.push(in_ids(ids).as_raw());
                    });
                }),
                None => &mut all,
            };
        }
        if all.is_empty() {
            return Ok(Arc::new(Filter::empty()));
        }
        let mut filter = DocBuf::new();
        filter.append("$and", &all);
        Ok(Arc::new(Filter::parse(filter.as_raw(), &scope)?))
    }

    /// An index on a counter leads to stored values only, so it is not what was meant.
    fn usable_hint(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Option<Hint>> {
        let Some(hint) = &find.hint else { return Ok(None) };
        let named = at.indexes(ns)?.into_iter().find(|index| match hint {
            Hint::Name(name) => index.spec.name == *name,
            Hint::Key(key) => index.spec.key().as_bytes() == key.as_bytes(),
            Hint::Natural { .. } => false,
        });
        Ok((!named.is_some_and(|index| self.is_on_counter(&index.spec))).then(|| hint.clone()))
    }

    pub(super) fn count_seen(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
        if self.read == Read::Flushed || !self.counters.are_read(&find.filter.dependencies()) {
            return at.count(ns, find);
        }
        let wanted = Find { needs: Some(Vec::new()), projection: None, sort: None, ..find.clone() };
        if let Plan::Stored(_) = self.plan(at, ns, &wanted)? {
            return at.count(ns, find);
        }
        let mut cursor = self.find_logical(at, ns, &wanted)?;
        let mut count = 0;
        while cursor.advance()? {
            count += 1;
        }
        Ok(count)
    }

    pub(super) fn distinct_seen(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        path: &str,
        find: &Find,
    ) -> Result<Vec<Value<'static>>> {
        let parsed = Path::new(path);
        let reads = self.counters.overlap(&parsed) || self.counters.are_read(&find.filter.dependencies());
        if self.read == Read::Flushed || !reads || self.rows(at, ns)?.is_some_and(|rows| rows.is_empty()) {
            return at.distinct(ns, path, find);
        }
        let wanted = Find { needs: Some(vec![parsed.first().to_string()]), ..find.clone() };
        let mut cursor = self.find_logical(at, ns, &wanted)?;
        espalier_query::distinct::collect(&mut *cursor, &parsed, find.context.collator())
    }
}

/// Nothing is left to do.
fn rest(find: &Find) -> Rest {
    Rest::nothing(&find.context, Run::new(find.context.clone()))
}

fn in_ids(ids: &ArrayBuf) -> DocBuf {
    let mut out = DocBuf::new();
    out.append_doc("_id", |doc| {
        doc.append("$in", ids);
    });
    out
}

fn by_ids(ids: &ArrayBuf) -> Result<Arc<Filter>> {
    Ok(Arc::new(Filter::parse(in_ids(ids).as_raw(), &Scope::default())?))
}
