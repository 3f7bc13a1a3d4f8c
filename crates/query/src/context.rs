//! What a command brings along for everything it runs: the time, variables, randomness, and whether to stop.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use espalier_value::{Code, Collation, Collator, Error, Result, Value};

use crate::helpers::Helpers;

/// One per command; shared by its filter, update, projection and pipeline.
#[derive(Debug, Default)]
pub struct Context {
    /// `$$NOW`, in milliseconds since the Unix epoch: one instant for the whole command.
    pub now_ms: i64,
    /// `$$CLUSTER_TIME`, as a BSON timestamp.
    pub cluster_time: u64,
    /// The command's `let`, evaluated: names without `$$`.
    pub lets: Vec<(Box<str>, Value<'static>)>,
    /// How the command compares strings; `None` is as bytes.
    pub collation: Option<Arc<Collation>>,
    /// The collection (`database.collection`) whose default the collation is, where the command asks for none. If that has
    /// another default by the time it is read or written, the command was understood wrongly.
    pub collation_of: Option<Box<str>>,
    pub interrupt: Interrupt,
    /// What was looked at on the command's behalf.
    pub work: Arc<Work>,
    /// Threads to borrow; `None` where there are none.
    pub helpers: Option<Arc<dyn Helpers>>,
    /// State of `$rand`, `$sampleRate` and `$sample`; seeded by whoever makes the context.
    random: AtomicU64,
}

impl Context {
    /// The work is about to wait until others have done something for it.
    pub fn waits(&self) {
        if let Some(helpers) = &self.helpers {
            helpers.waits();
        }
    }

    pub fn new(now_ms: i64, seed: u64) -> Context {
        Context { now_ms, random: AtomicU64::new(seed), ..Context::default() }
    }

    /// The context of a pipeline inside a stage: the same command, and more variables.
    pub fn with_lets(&self, lets: impl IntoIterator<Item = (Box<str>, Value<'static>)>) -> Context {
        Context {
            now_ms: self.now_ms,
            cluster_time: self.cluster_time,
            lets: self.lets.iter().cloned().chain(lets).collect(),
            collation: self.collation.clone(),
            // Others that the pipeline reads may have other defaults.
            collation_of: None,
            interrupt: self.interrupt.clone(),
            work: Arc::clone(&self.work),
            helpers: self.helpers.clone(),
            // Far from where this one goes on, so that the two do not draw the same numbers.
            random: AtomicU64::new(self.random().to_bits()),
        }
    }

    /// The same command with another collation: a part of it that names its own.
    pub fn with_collation(&self, collation: Option<Arc<Collation>>) -> Context {
        Context { collation, ..self.with_lets([]) }
    }

    /// The order of values in this command.
    #[inline]
    pub fn collator(&self) -> Collator<'_> {
        Collator::of(&self.collation)
    }

    /// A number in [0, 1): splitmix64 over a shared counter.
    pub fn random(&self) -> f64 {
        let mut z = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What a command has looked at so far and how, for the log, the profiler and the counters. Whoever reads documents for
/// it adds to this.
#[derive(Debug, Default)]
pub struct Work {
    keys: AtomicU64,
    docs: AtomicU64,
    sorted: AtomicBool,
    plan: OnceLock<Arc<dyn Summary>>,
}

/// A plan that can say what it is (`IXSCAN { a: 1 }`). Most plans are never asked.
pub trait Summary: Debug + Send + Sync {
    fn summary(&self) -> String;

    /// Whether it reads the whole collection.
    fn is_collection_scan(&self) -> bool {
        false
    }
}

impl Summary for &'static str {
    fn summary(&self) -> String {
        (*self).to_string()
    }

    fn is_collection_scan(&self) -> bool {
        *self == "COLLSCAN"
    }
}

impl Work {
    /// Adds index entries and documents. A command runs on one thread at a time, so no locked instruction is needed.
    #[inline]
    pub fn examined(&self, keys: u64, docs: u64) {
        self.keys.store(self.keys.load(Ordering::Relaxed) + keys, Ordering::Relaxed);
        self.docs.store(self.docs.load(Ordering::Relaxed) + docs, Ordering::Relaxed);
    }

    /// Notes how documents are found. The first plan of a command is the one that counts.
    pub fn planned<P: Summary + 'static>(&self, plan: &Arc<P>) {
        self.plan.get_or_init(|| Arc::clone(plan) as Arc<dyn Summary>);
    }

    /// Notes that documents had to be sorted.
    pub fn sorts(&self) {
        self.sorted.store(true, Ordering::Relaxed);
    }

    /// Index entries and documents examined so far.
    pub fn total(&self) -> (u64, u64) {
        (self.keys.load(Ordering::Relaxed), self.docs.load(Ordering::Relaxed))
    }

    pub fn has_sorted(&self) -> bool {
        self.sorted.load(Ordering::Relaxed)
    }

    pub fn is_collection_scan(&self) -> bool {
        self.plan.get().is_some_and(|plan| plan.is_collection_scan())
    }

    /// How documents are found; `None` if none were looked for.
    pub fn plan(&self) -> Option<String> {
        self.plan.get().map(|plan| plan.summary())
    }
}

/// Set from outside (a timer, `killOp`, a closed connection), looked at by everything that can take long.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// Asks the command to end with this code. The first to ask wins.
    pub fn raise(&self, code: Code) {
        let _ = self.0.compare_exchange(0, code.0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Cheap enough for every document.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(Interrupt::error(Code(code))),
        }
    }

    #[cold]
    fn error(code: Code) -> Error {
        let message = match code {
            Code::MaxTimeMSExpired => "operation exceeded time limit",
            Code::ShutdownInProgress | Code::InterruptedAtShutdown => "the server is shutting down",
            Code::ClientDisconnect => "the client closed its connection",
            _ => "operation was interrupted",
        };
        Error::new(code, message)
    }
}
