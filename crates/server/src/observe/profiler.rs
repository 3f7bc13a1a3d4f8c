//! The profiler: which commands are slow or to be written down, and `system.profile`, where they are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use espalier_query::{Context, Filter};
use espalier_store::{Begin, Capped, CollectionOptions, Insert, Mode, Namespace};
use espalier_value::{DocBuf, Result, doc};

use super::{Finished, entry};
use crate::server::Server;

/// Where entries go, one such collection in each database.
pub(crate) const COLLECTION: &str = "system.profile";
/// Its size, as in MongoDB.
const SIZE_BYTES: u64 = 1024 * 1024;

pub(crate) struct Profiler {
    /// A command that takes this many milliseconds is slow. Negative: all are.
    slow_ms: AtomicI64,
    /// The share of slow commands that are written down, as the bits of a double.
    sample_rate: AtomicU64,
    /// Whether any database is profiled or has a filter: most often not, and then there is nothing to look up.
    is_set: AtomicBool,
    settings: RwLock<HashMap<Box<str>, Arc<Setting>>>,
}

/// How one database is profiled.
#[derive(Clone, Default)]
pub(crate) struct Setting {
    /// 0: not; 1: what is slow or passes the filter; 2: everything.
    pub level: u8,
    pub filter: Option<Arc<Filter>>,
}

/// What is to be done with a command.
#[derive(Default)]
pub(super) struct Verdict {
    pub log: bool,
    pub profile: bool,
    /// The entry, if a filter had to look at it.
    pub entry: Option<DocBuf>,
}

impl Profiler {
    pub fn new(slow_ms: u64) -> Profiler {
        Profiler {
            slow_ms: AtomicI64::new(i64::try_from(slow_ms).unwrap_or(i64::MAX)),
            sample_rate: AtomicU64::new(1f64.to_bits()),
            is_set: AtomicBool::new(false),
            settings: RwLock::default(),
        }
    }

    pub fn slow_ms(&self) -> i64 {
        self.slow_ms.load(Ordering::Relaxed)
    }

    pub fn set_slow_ms(&self, ms: i64) {
        self.slow_ms.store(ms, Ordering::Relaxed);
    }

    pub fn sample_rate(&self) -> f64 {
        f64::from_bits(self.sample_rate.load(Ordering::Relaxed))
    }

    pub fn set_sample_rate(&self, rate: f64) {
        self.sample_rate.store(rate.to_bits(), Ordering::Relaxed);
    }

    pub fn setting(&self, db: &str) -> Arc<Setting> {
        if !self.is_set.load(Ordering::Relaxed) {
            return Arc::default();
        }
        let settings = self.settings.read().unwrap_or_else(PoisonError::into_inner);
        settings.get(db).cloned().unwrap_or_default()
    }

    /// Whether every command on the database is written down, whatever it does.
    pub fn is_on(&self, db: &str) -> bool {
        self.is_set.load(Ordering::Relaxed) && self.setting(db).level > 0
    }

    pub fn set(&self, db: &str, setting: Setting) {
        let mut settings = self.settings.write().unwrap_or_else(PoisonError::into_inner);
        if setting.level == 0 && setting.filter.is_none() {
            settings.remove(db);
        } else {
            settings.insert(db.into(), Arc::new(setting));
        }
        self.is_set.store(!settings.is_empty(), Ordering::Relaxed);
    }

    pub(super) fn judge(&self, finished: &Finished<'_, '_>, has_namespace: bool) -> Verdict {
        let setting = self.setting(finished.request.db);
        let mut verdict = Verdict::default();
        match &setting.filter {
            None => {
                let slow = finished.millis() >= self.slow_ms();
                verdict.log = slow && is_sampled(self.sample_rate(), finished.call.server);
            }
            Some(filter) => {
                let entry = entry::build(finished, None);
                // An expression that fails on an entry does not select it.
                verdict.log = filter.matches(entry.as_raw(), &Context::default()).unwrap_or(false);
                verdict.entry = Some(entry);
            }
        }
        verdict.profile = has_namespace && (setting.level == 2 || setting.level == 1 && verdict.log);
        verdict
    }
}

fn is_sampled(rate: f64, server: &Server) -> bool {
    rate >= 1.0 || (server.ids.random() >> 11) as f64 / ((1u64 << 53) as f64) < rate
}

/// Makes `system.profile` if the database has none.
pub(crate) fn create(server: &Server, db: &str) -> Result<()> {
    let ns = Namespace::new(db, COLLECTION);
    let context = Arc::new(Context::default());
    let mut transaction = server.store.begin(Begin { mode: Mode::Auto, want_changes: false, raw: true, context })?;
    if transaction.collection(&ns)?.is_some() {
        return Ok(());
    }
    let options = CollectionOptions {
        capped: Some(Capped { size_bytes: SIZE_BYTES, max_documents: 0 }),
        listed: doc! { "capped": true, "size": SIZE_BYTES as i32 },
        ..CollectionOptions::default()
    };
    transaction.create(&ns, &options)?;
    transaction.commit().map(drop)
}

/// Writes entries for a command that has ended. Nobody waits for them to be on disk.
pub(super) fn write(finished: &Finished<'_, '_>, ready: Option<DocBuf>) {
    let server = finished.call.server;
    // An operator copies the files; nothing is written meanwhile.
    if server.fsync_locks.is_locked() {
        return;
    }
    let written = entries(finished, ready);
    let result = create(server, finished.request.db).and_then(|()| insert(server, finished.request.db, &written));
    if let Err(error) = result {
        let ns = format!("{}.{COLLECTION}", finished.request.db);
        server.log.warn("command", "a profile entry could not be written", &[("ns", &ns), ("error", &error)]);
    }
}

/// One entry for the command, or one for each statement of an `update` or `delete`, as in MongoDB.
fn entries(finished: &Finished<'_, '_>, ready: Option<DocBuf>) -> Vec<DocBuf> {
    let statements = &finished.call.told.statements;
    match ready {
        Some(entry) if statements.is_empty() => vec![entry],
        _ if statements.is_empty() => vec![entry::build(finished, None)],
        _ => statements.iter().map(|statement| entry::build(finished, Some(statement))).collect(),
    }
}

fn insert(server: &Server, db: &str, entries: &[DocBuf]) -> Result<()> {
    let identified: Vec<DocBuf> = entries
        .iter()
        .map(|entry| {
            let mut doc = DocBuf::new();
            doc.append("_id", espalier_value::ValueRef::ObjectId(server.ids.object_id().0));
            entry.as_raw().iter().for_each(|elem| {
                doc.append_elem(elem);
            });
            doc
        })
        .collect();
    let docs: Vec<_> = identified.iter().map(DocBuf::as_raw).collect();
    let context = Arc::new(Context::default());
    let begin = Begin { mode: Mode::Auto, want_changes: false, raw: true, context: Arc::clone(&context) };
    let mut transaction = server.store.begin(begin)?;
    let ns = Namespace::new(db, COLLECTION);
    let how = Insert { ordered: false, bypass_validation: true, statements: None, context };
    let inserted = transaction.insert(&ns, &docs, &how)?;
    transaction.commit()?;
    server.notifier.written(&ns);
    inserted.errors.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}
