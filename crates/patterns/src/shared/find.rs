//! Reading a logical collection.

use std::sync::Arc;

use espalier_query::Filter;
use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_query::stage::Run;
use espalier_store::{Cursor, Find, Hint, Namespace, Transaction, Verbosity};
use espalier_value::{DocBuf, Path, RawDoc, Result, Value};

use super::Tenant;
use super::indexes::{TENANT_INDEX, prefixed};
use super::rewrite::{path, paths};
use crate::cursor::{Assemble, Rest, logical, refuse_physical};

impl Tenant {
    pub(super) fn find_logical(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<Box<dyn Cursor>> {
        let (stored, rest) = self.plan(find)?;
        let cursor = at.find(&self.physical(ns), &stored)?;
        Ok(Box::new(logical(cursor, Box::new(Assembly(self.clone())), rest)))
    }

    /// What is asked of the physical collection, and what is left to do with the logical documents.
    fn plan(&self, find: &Find) -> Result<(Find, Rest)> {
        refuse_physical(find, "shared", &format!("which is part of '{}'; read that", self.shared.into))?;
        let scope = Scope::of(&find.context);
        let (filter, ask_logical) = self.filter(find.filter.source(), &scope)?;
        let mut stored = find.clone();
        stored.filter = Arc::new(Filter::parse(filter.as_raw(), &scope)?);
        if let Some(sort) = &find.sort {
            stored.sort = Sort::parse(paths(sort.source()).as_raw(), &scope)?.map(Arc::new);
        }
        stored.hint = find.hint.as_ref().map(|hint| self.hint(hint));
        if let Some(needs) = &mut stored.needs {
            needs.push("_id".to_string());
        }
        let mut rest = Rest::nothing(&find.context, Run::new(find.context.clone()));
        rest.projection = stored.projection.take();
        if ask_logical {
            rest.filter = Some(find.filter.clone());
            (rest.skip, rest.limit) = (stored.skip, stored.limit);
            (stored.skip, stored.limit, stored.needs) = (0, None, None);
        }
        Ok((stored, rest))
    }

    fn hint(&self, hint: &Hint) -> Hint {
        match hint {
            Hint::Name(name) if name == "_id_" => Hint::Name(TENANT_INDEX.to_string()),
            Hint::Key(key) if key.as_raw().count() == 1 && key.as_raw().get("_id").is_some() => {
                Hint::Name(TENANT_INDEX.to_string())
            }
            Hint::Key(key) => Hint::Key(prefixed(&self.shared.discriminator, key.as_raw())),
            other => other.clone(),
        }
    }

    pub(super) fn count_logical(&self, at: &dyn Transaction, ns: &Namespace, find: &Find) -> Result<u64> {
        let (stored, rest) = self.plan(find)?;
        if rest.filter.is_none() {
            return at.count(&self.physical(ns), &stored);
        }
        let wanted = Find { projection: None, sort: None, ..find.clone() };
        let mut cursor = self.find_logical(at, ns, &wanted)?;
        let mut count = 0;
        while cursor.advance()? {
            count += 1;
        }
        Ok(count)
    }

    pub(super) fn distinct_logical(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        of: &str,
        find: &Find,
    ) -> Result<Vec<Value<'static>>> {
        let (stored, rest) = self.plan(find)?;
        if rest.filter.is_none() {
            return at.distinct(&self.physical(ns), &path(of), &stored);
        }
        let mut cursor = self.find_logical(at, ns, find)?;
        espalier_query::distinct::collect(&mut *cursor, &Path::new(of), find.context.collator())
    }

    pub(super) fn explain_logical(
        &self,
        at: &dyn Transaction,
        ns: &Namespace,
        find: &Find,
        verbosity: Verbosity,
    ) -> Result<DocBuf> {
        let (stored, rest) = self.plan(find)?;
        let mut out = at.explain(&self.physical(ns), &stored, verbosity)?;
        out.append_doc("patterns", |doc| {
            doc.append_doc("shared", |doc| {
                doc.append("into", &*self.shared.into)
                    .append(&self.shared.discriminator, &*self.tenant)
                    .append("filterOnLogicalDocument", rest.filter.is_some());
            });
        });
        Ok(out)
    }
}

struct Assembly(Tenant);

impl Assemble for Assembly {
    fn assemble(&mut self, stored: RawDoc<'_>) -> Result<Option<DocBuf>> {
        Ok(Some(self.0.logical_of(stored)))
    }

    fn examined(&self) -> (u64, u64) {
        (0, 0)
    }
}
