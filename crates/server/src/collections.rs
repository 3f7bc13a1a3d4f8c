//! Other collections of the database, for the stages of a pipeline that read them.

use std::sync::{Arc, Mutex, PoisonError};

use espalier_query::expression::Scope;
use espalier_query::stage::Collections;
use espalier_query::{Context, Filter, Stream};
use espalier_store::{Find, Namespace, Transaction};
use espalier_value::{DocBuf, RawDoc, Result, ValueRef};

/// Reads at the snapshot of one transaction.
pub struct AtSnapshot {
    db: Box<str>,
    transaction: Mutex<Box<dyn Transaction>>,
    context: Arc<Context>,
}

impl AtSnapshot {
    pub fn new(db: &str, transaction: Box<dyn Transaction>, context: Arc<Context>) -> AtSnapshot {
        AtSnapshot { db: db.into(), transaction: Mutex::new(transaction), context }
    }

    fn open(&self, collection: &str, find: &Find) -> Result<Box<dyn Stream>> {
        let ns = Namespace::new(&self.db, collection);
        let transaction = self.transaction.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(transaction.find(&ns, find)?)
    }
}

impl std::fmt::Debug for AtSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtSnapshot").field("db", &self.db).finish_non_exhaustive()
    }
}

impl Collections for AtSnapshot {
    fn find(&self, collection: &str, filter: &Filter, context: &Arc<Context>) -> Result<Box<dyn Stream>> {
        let filter = Filter::parse(filter.source(), &Scope::of(context))?;
        self.open(collection, &Find::new(Arc::new(filter), Arc::clone(context)))
    }

    fn each_equal(
        &self,
        collection: &str,
        path: &str,
        value: ValueRef<'_>,
        found: &mut dyn FnMut(RawDoc<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut equal = DocBuf::new();
        equal.append_doc(path, |condition| {
            condition.append("$eq", value);
        });
        let filter = Filter::parse(equal.as_raw(), &Scope::default())?;
        let mut stream = self.open(collection, &Find::new(Arc::new(filter), Arc::clone(&self.context)))?;
        while stream.advance()? {
            found(stream.doc())?;
        }
        Ok(())
    }
}
