//! The log: one line an event on stderr, for people or as JSON in the shape of MongoDB's own log, and the last lines in
//! memory for `getLog`.

use std::collections::VecDeque;
use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::clock;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

impl Level {
    pub const NAMES: [(&'static str, Level); 4] =
        [("error", Level::Error), ("warn", Level::Warn), ("info", Level::Info), ("debug", Level::Debug)];

    pub fn parse(name: &str) -> Option<Level> {
        Level::NAMES.iter().find(|(n, _)| *n == name).map(|(_, level)| *level)
    }

    pub fn name(self) -> &'static str {
        Level::NAMES.iter().find(|(_, level)| *level == self).map_or("", |(name, _)| name)
    }

    fn letter(self) -> &'static str {
        match self {
            Level::Error => "E",
            Level::Warn => "W",
            Level::Info => "I",
            Level::Debug => "D1",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Human,
    Json,
}

impl Format {
    pub const NAMES: [(&'static str, Format); 2] = [("human", Format::Human), ("json", Format::Json)];

    pub fn parse(name: &str) -> Option<Format> {
        Format::NAMES.iter().find(|(n, _)| *n == name).map(|(_, format)| *format)
    }
}

/// Lines kept for `getLog`.
const KEPT_LINES: usize = 1024;
/// A longer value is cut, so that a log line stays a line.
const FIELD_BYTES_MAX: usize = 4096;

pub struct Log {
    /// As a place in [`Level::NAMES`], so that it can change while others log.
    level: AtomicUsize,
    /// The one it was started with.
    configured: Level,
    format: Format,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<String>,
    total: u64,
    warnings: Vec<String>,
}

/// A name and something to show.
pub type Field<'a> = (&'a str, &'a dyn Display);

impl Log {
    pub fn new(level: Level, format: Format) -> Log {
        Log { level: AtomicUsize::new(level as usize), configured: level, format, kept: Mutex::default() }
    }

    /// MongoDB's `logLevel`: above 0 everything is logged, at 0 what the command line says.
    pub fn set_verbosity(&self, verbosity: u64) {
        let level = if verbosity > 0 { Level::Debug } else { self.configured };
        self.level.store(level as usize, Ordering::Relaxed);
    }

    pub fn verbosity(&self) -> i32 {
        i32::from(self.enabled(Level::Debug))
    }

    pub fn enabled(&self, level: Level) -> bool {
        level as usize <= self.level.load(Ordering::Relaxed)
    }

    pub fn error(&self, component: &str, message: &str, fields: &[Field<'_>]) {
        self.write(Level::Error, component, message, fields);
    }

    pub fn warn(&self, component: &str, message: &str, fields: &[Field<'_>]) {
        self.write(Level::Warn, component, message, fields);
    }

    pub fn info(&self, component: &str, message: &str, fields: &[Field<'_>]) {
        self.write(Level::Info, component, message, fields);
    }

    pub fn debug(&self, component: &str, message: &str, fields: &[Field<'_>]) {
        self.write(Level::Debug, component, message, fields);
    }

    /// A warning that `getLog: "startupWarnings"` shows to everyone who connects.
    pub fn startup_warning(&self, message: &str) {
        let line = json_line(&timestamp(clock::now_ms()), Level::Warn, "CONTROL", message, &[]);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).warnings.push(line);
        self.warn("control", message, &[]);
    }

    pub fn startup_warnings(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).warnings.clone()
    }

    /// The number of lines ever written, and the last ones.
    pub fn recent(&self) -> (u64, Vec<String>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.total, kept.lines.iter().cloned().collect())
    }

    fn write(&self, level: Level, component: &str, message: &str, fields: &[Field<'_>]) {
        if !self.enabled(level) {
            return;
        }
        let time = timestamp(clock::now_ms());
        let json = json_line(&time, level, &component.to_ascii_uppercase(), message, fields);
        let shown = match self.format {
            Format::Json => format!("{json}\n"),
            Format::Human => human_line(&time, level, component, message, fields),
        };
        // Nobody can be told if stderr is gone.
        let _ = std::io::stderr().lock().write_all(shown.as_bytes());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.lines.len() == KEPT_LINES {
            kept.lines.pop_front();
        }
        kept.lines.push_back(json);
        kept.total += 1;
    }
}

fn human_line(time: &str, level: Level, component: &str, message: &str, fields: &[Field<'_>]) -> String {
    let mut line = format!("{time} {:<5} {component:<8} {message}", level.name());
    for (name, value) in fields {
        let text = cut(value.to_string());
        let quote = text.is_empty() || text.contains([' ', '"', '\n']);
        let _ = if quote { write!(line, " {name}={text:?}") } else { write!(line, " {name}={text}") };
    }
    line.push('\n');
    line
}

fn json_line(time: &str, level: Level, component: &str, message: &str, fields: &[Field<'_>]) -> String {
    let mut line = format!(
        r#"{{"t":{{"$date":"{time}"}},"s":"{}","c":{},"id":0,"ctx":"espalier","msg":{}"#,
        level.letter(),
        json_string(component),
        json_string(message)
    );
    if !fields.is_empty() {
        line.push_str(r#","attr":{"#);
        for (i, (name, value)) in fields.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(line, "{comma}{}:{}", json_string(name), json_string(&cut(value.to_string())));
        }
        line.push('}');
    }
    line.push('}');
    line
}

fn cut(mut text: String) -> String {
    if text.len() > FIELD_BYTES_MAX {
        let end = (0..=FIELD_BYTES_MAX).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

pub(crate) fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// `2026-01-31T23:59:59.123Z`.
pub(crate) fn timestamp(ms: i64) -> String {
    let (days, in_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    // Howard Hinnant's civil_from_days: eras of 400 years that start on 1 March.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (h, m, s, milli) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1000 % 60, in_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_right_around_leap_days() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(timestamp(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(timestamp(1_794_713_789_493), "2026-11-15T03:36:29.493Z");
        assert_eq!(timestamp(-1), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn lines_are_kept_up_to_a_limit_and_escape_their_text() {
        let log = Log::new(Level::Error, Format::Json);
        log.info("network", "not shown", &[]);
        assert_eq!(log.recent().0, 0);
        let line = json_line("T", Level::Warn, "NETWORK", "a \"b\"\n", &[("peer", &"1.2.3.4:5")]);
        assert_eq!(
            line,
            r#"{"t":{"$date":"T"},"s":"W","c":"NETWORK","id":0,"ctx":"espalier","msg":"a \"b\"\n","attr":{"peer":"1.2.3.4:5"}}"#
        );
        let human = human_line("T", Level::Info, "network", "m", &[("a", &1), ("b", &"x y")]);
        assert_eq!(human, "T info  network  m a=1 b=\"x y\"\n");
    }
}
