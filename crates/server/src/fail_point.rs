//! `failCommand`: errors on demand, so that a driver's tests can see how it behaves. Only with `--enable-test-commands`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use espalier_value::number::Number;
use espalier_value::{Code, DocBuf, Error, RawDoc, Result, ValueRef};

#[derive(Default)]
pub struct FailPoints {
    any: AtomicBool,
    fail_command: Mutex<Option<FailCommand>>,
}

struct FailCommand {
    mode: Mode,
    data: DocBuf,
}

enum Mode {
    Always,
    Times(u64),
    Skip(u64),
}

/// What a fail point does to a command.
#[derive(Default)]
pub struct Injected {
    pub error: Option<Error>,
    pub close: bool,
    pub write_concern_error: Option<DocBuf>,
}

impl FailPoints {
    pub fn are_set(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    pub fn configure(&self, mode: ValueRef<'_>, data: RawDoc<'_>) -> Result<()> {
        let count = |doc: RawDoc<'_>, name: &str| {
            doc.get(name).and_then(Number::of).map(|n| u64::try_from(n.to_i64_clamped()).unwrap_or(0))
        };
        let mode = match mode {
            ValueRef::String("off") => None,
            ValueRef::String("alwaysOn") => Some(Mode::Always),
            ValueRef::Document(doc) => match (count(doc, "times"), count(doc, "skip")) {
                (Some(times), _) => Some(Mode::Times(times)),
                (_, Some(skip)) => Some(Mode::Skip(skip)),
                _ => return Err(Error::bad_value("'mode' must be one of 'off', 'alwaysOn', 'times', and 'skip'")),
            },
            _ => return Err(Error::bad_value("'mode' must be one of 'off', 'alwaysOn', 'times', and 'skip'")),
        };
        self.any.store(mode.is_some(), Ordering::Relaxed);
        let mut point = self.fail_command.lock().unwrap_or_else(PoisonError::into_inner);
        *point = mode.map(|mode| FailCommand { mode, data: DocBuf::from_raw(data) });
        Ok(())
    }

    /// What is to happen to this command, if anything. Blocks if the fail point says so.
    pub fn inject(
        &self,
        command: &str,
        argument: ValueRef<'_>,
        db: &str,
        client: Option<RawDoc<'_>>,
    ) -> Option<Injected> {
        let data = {
            let mut point = self.fail_command.lock().unwrap_or_else(PoisonError::into_inner);
            let point = point.as_mut()?;
            if !point.concerns(command, argument, db, client) {
                return None;
            }
            match &mut point.mode {
                Mode::Always => {}
                Mode::Times(0) => return None,
                Mode::Times(left) => *left -= 1,
                Mode::Skip(0) => {}
                Mode::Skip(left) => {
                    *left -= 1;
                    return None;
                }
            }
            point.data.clone()
        };
        let data = data.as_raw();
        if data.get("blockConnection").is_some_and(|v| matches!(v, ValueRef::Bool(true))) {
            let ms = data.get("blockTimeMS").and_then(Number::of).map_or(0, Number::to_i64_clamped);
            std::thread::sleep(Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
        }
        let error = data.get("errorCode").and_then(Number::of).map(|code| {
            let code = Code(i32::try_from(code.to_i64_clamped()).unwrap_or(1));
            let error = Error::new(code, "Failing command via 'failCommand' failpoint");
            match data.elem("errorLabels") {
                Some(labels) => {
                    let mut info = DocBuf::new();
                    info.append_elem(labels);
                    error.with_info(info)
                }
                None => error,
            }
        });
        Some(Injected {
            error,
            close: matches!(data.get("closeConnection"), Some(ValueRef::Bool(true))),
            write_concern_error: data.get_doc("writeConcernError").map(DocBuf::from_raw),
        })
    }
}

impl FailCommand {
    fn concerns(&self, command: &str, argument: ValueRef<'_>, db: &str, client: Option<RawDoc<'_>>) -> bool {
        // A fail point must not lock out the command that takes it away.
        if command == "configureFailPoint" {
            return false;
        }
        let data = self.data.as_raw();
        let named = match data.get("failCommands") {
            Some(ValueRef::Array(names)) => names.iter().any(|name| name.as_str() == Some(command)),
            _ => false,
        };
        let app = data.get_str("appName").is_none_or(|wanted| {
            client.and_then(|c| c.get_doc("application")).and_then(|a| a.get_str("name")) == Some(wanted)
        });
        let namespace = data.get_str("namespace").is_none_or(|wanted| {
            let collection = argument.as_str().unwrap_or_default();
            wanted.split_once('.') == Some((db, collection))
        });
        named && app && namespace
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use espalier_value::{ArrayBuf, doc};

    #[test]
    fn a_command_fails_as_often_as_asked() {
        let points = FailPoints::default();
        let mut names = ArrayBuf::new();
        names.push("find");
        let data = doc! { "failCommands": &names, "errorCode": 91 };
        points.configure(ValueRef::Document(doc! { "times": 2 }.as_raw()), data.as_raw()).unwrap();
        let inject = |name: &str| points.inject(name, ValueRef::Null, "test", None).and_then(|i| i.error);
        assert!(inject("insert").is_none());
        assert_eq!(inject("find").unwrap().code(), Code(91));
        assert_eq!(inject("find").unwrap().code(), Code(91));
        assert!(inject("find").is_none());
        points.configure(ValueRef::String("off"), RawDoc::EMPTY).unwrap();
        assert!(!points.are_set());
    }
}
