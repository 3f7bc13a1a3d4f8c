//! Server parameters: what `getParameter` shows and `setParameter` changes. Only those that clients and tools ask for, each
//! with a value that is true here; what can be changed takes effect at once, and everything else is refused by name.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use espalier_value::number::Number;
use espalier_value::{ArrayBuf, Code, Error, Result, Value, ValueRef, doc};

use crate::limits::Limits;
use crate::server::Server;

/// One parameter.
pub struct Parameter {
    pub name: &'static str,
    get: fn(&Server) -> Value<'static>,
    set: Option<Set>,
}

/// How a parameter is changed.
enum Set {
    Bool(fn(&Server, bool)),
    /// With the least and the greatest value.
    Number(i64, i64, fn(&Server, u64)),
}

impl Parameter {
    /// Can be changed while the server runs.
    pub fn is_settable(&self) -> bool {
        self.set.is_some()
    }
}

macro_rules! parameters {
    ($($name:literal, $get:expr, $set:expr;)*) => {
        /// Every parameter, sorted by name.
        pub static ALL: &[Parameter] = &[$(Parameter { name: $name, get: $get, set: $set },)*];
    };
}

parameters! {
    "authenticationMechanisms", |_| Value::array(["SCRAM-SHA-1", "SCRAM-SHA-256"].map(ValueRef::from).into_iter().collect::<ArrayBuf>()), None;
    "cursorTimeoutMillis", |s| ValueRef::Int64(s.cursors.timeout().as_millis() as i64).into(), Some(Set::Number(1, i64::MAX, |s, ms| s.cursors.set_timeout_ms(ms)));
    "enableTestCommands", |s| ValueRef::Bool(s.options.test_commands).into(), None;
    "featureCompatibilityVersion", |_| Value::document(doc! { "version": "6.0" }), None;
    "localLogicalSessionTimeoutMinutes", |s| ValueRef::Int32(s.options.limits.session_timeout_minutes as i32).into(), None;
    "logLevel", |s| ValueRef::Int32(s.log.verbosity()).into(), Some(Set::Number(0, 5, |s, level| s.log.set_verbosity(level)));
    "maxBSONDepth", |s| ValueRef::Int32(s.options.limits.document_depth_max as i32).into(), None;
    "maxSessions", |s| ValueRef::Int32(s.options.limits.sessions_max as i32).into(), None;
    "notablescan", |_| ValueRef::Bool(false).into(), None;
    "quiet", |s| ValueRef::Bool(s.parameters.is_quiet()).into(), Some(Set::Bool(|s, on| s.parameters.quiet.store(on, Ordering::Relaxed)));
    "requireApiVersion", |_| ValueRef::Bool(false).into(), None;
    "saslHostName", |_| Value::string(""), None;
    "transactionLifetimeLimitSeconds", |s| ValueRef::Int32(s.parameters.transaction_lifetime().as_secs() as i32).into(), Some(Set::Number(1, i32::MAX as i64, |s, n| s.parameters.transaction_seconds.store(n, Ordering::Relaxed)));
    "ttlMonitorEnabled", |s| ValueRef::Bool(s.parameters.ttl_enabled.load(Ordering::Relaxed)).into(), Some(Set::Bool(|s, on| s.parameters.ttl_enabled.store(on, Ordering::Relaxed)));
    "ttlMonitorSleepSecs", |s| ValueRef::Int32(s.parameters.ttl_sleep_seconds.load(Ordering::Relaxed) as i32).into(), Some(Set::Number(1, i32::MAX as i64, |s, n| s.parameters.ttl_sleep_seconds.store(n, Ordering::Relaxed)));
}

/// What MongoDB lets one change while it runs and Espalier has no use for: refused with a reason.
static WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("journalCommitInterval", "a write is on disk when it is acknowledged"),
    ("maxIndexBuildMemoryUsageMegabytes", "index builds hold a few documents at a time"),
    ("maxTransactionLockRequestTimeoutMillis", "transactions take no locks that they would wait for"),
    ("notablescan", "collection scans cannot be forbidden yet"),
];

/// The values that live nowhere else.
pub struct Parameters {
    transaction_seconds: AtomicU64,
    ttl_enabled: AtomicBool,
    ttl_sleep_seconds: AtomicU64,
    quiet: AtomicBool,
}

pub fn find(name: &str) -> Option<&'static Parameter> {
    ALL.binary_search_by_key(&name, |parameter| parameter.name).ok().map(|at| &ALL[at])
}

/// Why a parameter that MongoDB has cannot be set here.
pub fn without_effect(name: &str) -> Option<Error> {
    let (_, why) = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name)?;
    Some(Error::new(Code::CommandNotSupported, format!("the parameter {name} has no effect in Espalier: {why}")))
}

impl Parameters {
    pub fn new(limits: &Limits) -> Parameters {
        Parameters {
            transaction_seconds: AtomicU64::new(limits.transaction_seconds_max),
            ttl_enabled: AtomicBool::new(true),
            ttl_sleep_seconds: AtomicU64::new(60),
            quiet: AtomicBool::new(false),
        }
    }

    /// A transaction is aborted after this long.
    pub fn transaction_lifetime(&self) -> Duration {
        Duration::from_secs(self.transaction_seconds.load(Ordering::Relaxed))
    }

    /// Connections that come and go are not logged.
    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    pub fn get(&self, server: &Server, parameter: &Parameter) -> Value<'static> {
        (parameter.get)(server)
    }

    /// Checks a new value; gives what sets it.
    pub fn prepare<'s>(
        &self,
        server: &'s Server,
        parameter: &'static Parameter,
        value: ValueRef<'_>,
    ) -> Result<Box<dyn FnOnce() + 's>> {
        let name = parameter.name;
        let number = Number::of(value);
        let wrong = |expected: &str| {
            let found = value.ty().name();
            Error::bad_value(format!("Failed to set parameter {name}: it is a {expected}, not a {found}"))
        };
        match &parameter.set {
            None => Err(Error::new(Code::IllegalOperation, format!("not allowed to change [{name}] at runtime"))),
            Some(Set::Bool(set)) => {
                let on = match value {
                    ValueRef::Bool(on) => on,
                    _ => !number.ok_or_else(|| wrong("bool"))?.is_zero(),
                };
                Ok(Box::new(move || set(server, on)))
            }
            Some(Set::Number(least, greatest, set)) => {
                let number = number.ok_or_else(|| wrong("number"))?.to_i64_clamped();
                if !(*least..=*greatest).contains(&number) {
                    let message =
                        format!("Invalid value for parameter {name}: {number} is not between {least} and {greatest}");
                    return Err(Error::bad_value(message));
                }
                Ok(Box::new(move || set(server, number as u64)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(WITHOUT_EFFECT.iter().all(|(name, _)| find(name).is_none_or(|parameter| !parameter.is_settable())));
    }
}
