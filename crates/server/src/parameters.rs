//! Server parameters: what `getParameter` shows and `setParameter` changes. Only those that clients and tools ask for, each
//! with a value that is true here.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use espalier_value::{ArrayBuf, Code, Error, Result, Value, ValueRef, doc};

use crate::server::Server;

/// One parameter.
pub struct Parameter {
    pub name: &'static str,
    /// Can be changed while the server runs.
    pub settable: bool,
    default: fn(&Server) -> Value<'static>,
}

macro_rules! parameters {
    ($($name:literal, $settable:literal, $default:expr;)*) => {
        /// Every parameter, sorted by name.
        pub static ALL: &[Parameter] =
            &[$(Parameter { name: $name, settable: $settable, default: $default },)*];
    };
}

parameters! {
    "authenticationMechanisms", false, |_| Value::array(["SCRAM-SHA-1", "SCRAM-SHA-256"].map(ValueRef::from).into_iter().collect::<ArrayBuf>());
    "cursorTimeoutMillis", false, |s| ValueRef::Int64((s.options.limits.cursor_timeout_seconds * 1000) as i64).into();
    "enableTestCommands", false, |s| ValueRef::Bool(s.options.test_commands).into();
    "featureCompatibilityVersion", false, |_| Value::document(doc! { "version": "6.0" });
    "journalCommitInterval", true, |_| ValueRef::Int32(100).into();
    "localLogicalSessionTimeoutMinutes", false, |s| ValueRef::Int32(s.options.limits.session_timeout_minutes as i32).into();
    "logLevel", true, |_| ValueRef::Int32(0).into();
    "maxBSONDepth", false, |s| ValueRef::Int32(s.options.limits.document_depth_max as i32).into();
    "maxIndexBuildMemoryUsageMegabytes", true, |_| ValueRef::Int32(200).into();
    "maxSessions", false, |s| ValueRef::Int32(s.options.limits.sessions_max as i32).into();
    "maxTransactionLockRequestTimeoutMillis", true, |_| ValueRef::Int32(5).into();
    "notablescan", true, |_| ValueRef::Bool(false).into();
    "quiet", true, |_| ValueRef::Bool(false).into();
    "requireApiVersion", false, |_| ValueRef::Bool(false).into();
    "saslHostName", false, |_| Value::string("");
    "transactionLifetimeLimitSeconds", false, |s| ValueRef::Int32(s.options.limits.transaction_seconds_max as i32).into();
    "ttlMonitorEnabled", true, |_| ValueRef::Bool(true).into();
    "ttlMonitorSleepSecs", true, |_| ValueRef::Int32(60).into();
}

#[derive(Default)]
pub struct Parameters {
    changed: Mutex<BTreeMap<&'static str, Value<'static>>>,
}

pub fn find(name: &str) -> Option<&'static Parameter> {
    ALL.binary_search_by_key(&name, |parameter| parameter.name).ok().map(|at| &ALL[at])
}

impl Parameters {
    pub fn get(&self, server: &Server, parameter: &Parameter) -> Value<'static> {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.get(parameter.name).cloned().unwrap_or_else(|| (parameter.default)(server))
    }

    /// Changes a parameter; gives its value before.
    pub fn set(&self, server: &Server, parameter: &'static Parameter, value: ValueRef<'_>) -> Result<Value<'static>> {
        let name = parameter.name;
        if !parameter.settable {
            let message = format!("not allowed to change [{name}] at runtime");
            return Err(Error::new(Code::IllegalOperation, message));
        }
        let before = self.get(server, parameter);
        let fits = match before.or_null() {
            ValueRef::Bool(_) => matches!(value, ValueRef::Bool(_)) || value.is_number(),
            old if old.is_number() => value.is_number(),
            old => old.ty() == value.ty(),
        };
        if !fits {
            let (found, expected) = (value.ty().name(), before.or_null().ty().name());
            return Err(Error::bad_value(format!("Failed to set parameter {name}: it is a {expected}, not a {found}")));
        }
        self.changed.lock().unwrap_or_else(PoisonError::into_inner).insert(name, Value::own(value));
        Ok(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
