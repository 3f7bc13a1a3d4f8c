//! Other collections of the database, for the stages of a pipeline that read them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use espalier_query::stage::{Collections, Leading, Run};
use espalier_query::{Context, Stream};
use espalier_store::{Cursor, Distinct, Find, Namespace, Transaction, Verbosity};
use espalier_value::{ArrayBuf, Code, Collator, DocBuf, Error, Result};

use crate::views;

/// Reads at the snapshot of one transaction.
pub struct AtSnapshot {
    db: Box<str>,
    transaction: Mutex<Box<dyn Transaction>>,
}

impl AtSnapshot {
    pub fn new(db: &str, transaction: Box<dyn Transaction>) -> AtSnapshot {
        AtSnapshot { db: db.into(), transaction: Mutex::new(transaction) }
    }

    /// As [`Collections::find`], with the plan it is carried out by.
    pub fn find_explained(&self, collection: &str, leading: &Leading, run: &Run) -> Result<(Box<dyn Cursor>, DocBuf)> {
        let ns = Namespace::new(&self.db, collection);
        let mut find = find_for(leading, &run.context);
        find.allow_disk_use = run.spill.is_some();
        let transaction = self.transaction();
        let plan = transaction.explain(&ns, &find, Verbosity::QueryPlanner)?;
        Ok((transaction.find(&ns, &find)?, plan))
    }

    fn transaction(&self) -> MutexGuard<'_, Box<dyn Transaction>> {
        self.transaction.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for AtSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtSnapshot").field("db", &self.db).finish_non_exhaustive()
    }
}

impl Collections for AtSnapshot {
    fn view(&self, name: &str, collator: Collator<'_>) -> Result<Option<(Box<str>, ArrayBuf)>> {
        let ns = Namespace::new(&self.db, name);
        let transaction = self.transaction();
        let resolved = views::resolve(&**transaction, &ns)?;
        if let Some(info) = transaction.collection(&ns)?
            && info.options.view.is_some()
            && Collator::of(&info.options.collation) != collator
        {
            let message = format!("Cannot override a view's default collation: {ns}");
            return Err(Error::new(Code::OptionNotSupportedOnView, message));
        }
        Ok(resolved.map(|view| (view.below.collection().into(), view.stages)))
    }

    fn find(&self, collection: &str, leading: &Leading, run: &Run) -> Result<Box<dyn Stream>> {
        let ns = Namespace::new(&self.db, collection);
        let mut find = find_for(leading, &run.context);
        find.allow_disk_use = run.spill.is_some();
        Ok(self.transaction().find(&ns, &find)?)
    }

    fn has_index(&self, collection: &str, path: &str, collator: Collator<'_>) -> Result<bool> {
        let indexes = self.transaction().indexes(&Namespace::new(&self.db, collection))?;
        Ok(indexes.iter().any(|index| index.finds_any_value(path, collator)))
    }
}

/// The find that does the beginning of a pipeline.
pub fn find_for(leading: &Leading, context: &Arc<Context>) -> Find {
    let mut find = Find::new(Arc::clone(&leading.filter), Arc::clone(context));
    find.sort = leading.sort.clone();
    find.skip = leading.skip;
    find.limit = leading.limit;
    find.group = leading.group.clone();
    find.needs = leading.needs.as_ref().map(|paths| paths.iter().map(|path| path.as_str().to_string()).collect());
    find.distinct = leading.distinct.as_ref().map(|path| Distinct { path: path.as_str().to_string(), missing: true });
    find
}
