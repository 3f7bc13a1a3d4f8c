//! An open transaction, shared by its session and whatever reads in it, and the part a single command takes in it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use espalier_query::{Context, Stream};
use espalier_store::{
    Amend, Change, CollStats, CollectionInfo, CollectionOptions, CommitToken, Cursor, DatabaseInfo, Delete, Deleted,
    Find, Happening, IndexInfo, IndexSpec, Insert, Inserted, Layer, Namespace, Remembered, SessionId, Transaction,
    TransactionId, Update, Updated, Verbosity, ViewDefinition,
};
use espalier_value::{DocBuf, Error, RawDoc, Result, Value, ValueRef};

use super::checked_out::aborted;
use crate::server::Server;

/// A transaction between its commands; empty once it has ended.
pub struct Joint {
    number: i64,
    transaction: Mutex<Option<Box<dyn Transaction>>>,
    /// Cursors opened in it, which end with it.
    cursors: Mutex<Vec<i64>>,
    server: Weak<Server>,
}

impl Joint {
    pub fn new(number: i64, transaction: Box<dyn Transaction>, server: &Arc<Server>) -> Joint {
        let server = Arc::downgrade(server);
        Joint { number, transaction: Mutex::new(Some(transaction)), cursors: Mutex::default(), server }
    }

    /// Takes note of a cursor that was opened in it.
    pub fn opened(&self, cursor: i64) {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner).push(cursor);
    }

    pub fn number(&self) -> i64 {
        self.number
    }

    /// Takes it to end it.
    pub fn take(&self) -> Option<Box<dyn Transaction>> {
        let cursors = std::mem::take(&mut *self.cursors.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(server) = self.server.upgrade() {
            for id in cursors {
                server.cursors.kill(id);
            }
        }
        self.lock().take()
    }

    /// Ends it without a trace but for what is counted; it was open for so long.
    pub fn abort(&self, open: Duration) {
        if let Some(server) = self.server.upgrade() {
            server.metrics.ended(false, open);
        }
        drop(self.take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Transaction>>> {
        self.transaction.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, run: impl FnOnce(&mut dyn Transaction) -> Result<T>) -> Result<T> {
        match &mut *self.lock() {
            Some(transaction) => run(&mut **transaction),
            None => Err(aborted(self.number)),
        }
    }
}

/// A command's part in a transaction: reads and writes go to it, and ending it is not the command's business.
pub struct Participant(Arc<Joint>);

impl Participant {
    pub fn new(joint: &Arc<Joint>) -> Participant {
        Participant(Arc::clone(joint))
    }
}

macro_rules! delegate {
    ($($(#[$mutable:ident])? fn $name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {
        $(delegate!(@one $($mutable)? $name($($arg: $ty),*) -> $out);)*
    };
    (@one mutable $name:ident($($arg:ident: $ty:ty),*) -> $out:ty) => {
        fn $name(&mut self, $($arg: $ty),*) -> Result<$out> {
            self.0.with(|transaction| transaction.$name($($arg),*))
        }
    };
    (@one $name:ident($($arg:ident: $ty:ty),*) -> $out:ty) => {
        fn $name(&self, $($arg: $ty),*) -> Result<$out> {
            self.0.with(|transaction| transaction.$name($($arg),*))
        }
    };
}

impl Transaction for Participant {
    delegate! {
        fn find(ns: &Namespace, find: &Find) -> Box<dyn Cursor>;
        fn count(ns: &Namespace, find: &Find) -> u64;
        fn distinct(ns: &Namespace, path: &str, find: &Find) -> Vec<Value<'static>>;
        fn explain(ns: &Namespace, find: &Find, verbosity: Verbosity) -> DocBuf;
        #[mutable] fn insert(ns: &Namespace, docs: &[RawDoc<'_>], insert: &Insert) -> Inserted;
        #[mutable] fn update(ns: &Namespace, update: &Update) -> Updated;
        #[mutable] fn delete(ns: &Namespace, delete: &Delete) -> Deleted;
        #[mutable] fn amend(
            ns: &Namespace,
            id: ValueRef<'_>,
            change: &mut Amend<'_>
        ) -> bool;
        fn taken(ns: &Namespace, doc: RawDoc<'_>) -> Option<Error>;
        fn databases() -> Vec<DatabaseInfo>;
        fn collections(db: &str) -> Vec<CollectionInfo>;
        fn collection(ns: &Namespace) -> Option<CollectionInfo>;
        fn logical_names(db: &str, context: &Arc<Context>) -> Box<dyn Stream>;
        fn view(ns: &Namespace) -> Option<ViewDefinition>;
        fn layer(ns: &Namespace) -> Option<Layer>;
        #[mutable] fn create(ns: &Namespace, options: &CollectionOptions) -> ();
        #[mutable] fn drop_collection(ns: &Namespace) -> bool;
        #[mutable] fn rename(from: &Namespace, to: &Namespace, drop_target: bool) -> ();
        #[mutable] fn set_options(ns: &Namespace, options: &CollectionOptions) -> ();
        #[mutable] fn set_options_together(all: &[(Namespace, CollectionOptions)], emptied: &Namespace) -> ();
        fn collections_left() -> usize;
        fn indexes(ns: &Namespace) -> Vec<IndexInfo>;
        #[mutable] fn create_indexes(ns: &Namespace, specs: &[IndexSpec]) -> (usize, usize);
        #[mutable] fn drop_index(ns: &Namespace, name: &str) -> ();
        #[mutable] fn set_index(ns: &Namespace, name: &str, spec: &IndexSpec) -> ();
        fn coll_stats(ns: &Namespace) -> CollStats;
        #[mutable] fn validate(ns: &Namespace, full: bool, repair: bool) -> DocBuf;
        #[mutable] fn announce(event: Happening) -> ();
    }

    fn reader(&self) -> Box<dyn Transaction> {
        match &*self.0.lock() {
            Some(transaction) => transaction.reader(),
            None => Box::new(Participant::new(&self.0)),
        }
    }

    fn remember(&mut self, _: &SessionId, _: i64, _: &Remembered) {}

    fn remember_commit(&mut self, _: &SessionId, _: i64) {}

    fn set_silent(&mut self, silent: bool) {
        // A transaction that is gone tells nothing.
        let _ = self.0.with(|transaction| {
            transaction.set_silent(silent);
            Ok(())
        });
    }

    /// Known since the transaction began.
    fn set_identity(&mut self, _: TransactionId) {}

    fn take_changes(&mut self) -> Vec<Change> {
        Vec::new()
    }

    fn commit(self: Box<Self>) -> Result<CommitToken> {
        Ok(CommitToken::default())
    }

    fn abort(self: Box<Self>) {}
}
