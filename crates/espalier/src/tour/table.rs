//! The table at the end of a chapter: what it cost before, and what it costs after.

use std::time::Duration;

use super::Result;
use super::guide::Cost;
use super::screen::{Colour, Screen};

pub struct Table {
    rows: Vec<(String, f64, f64, Unit)>,
}

#[derive(Clone, Copy)]
pub enum Unit {
    Count,
    Bytes,
    Seconds,
}

impl Table {
    pub fn new() -> Table {
        Table { rows: Vec::new() }
    }

    pub fn row(mut self, what: &str, before: f64, after: f64, unit: Unit) -> Table {
        self.rows.push((what.to_owned(), before, after, unit));
        self
    }

    /// What a statement reads.
    pub fn reading(self, what: &str, before: &Cost, after: &Cost) -> Table {
        self.row(&format!("{what}: documents read"), before.documents, after.documents, Unit::Count)
            .row(&format!("{what}: bytes read"), before.received, after.received, Unit::Bytes)
            .row(&format!("{what}: time"), seconds(before.time), seconds(after.time), Unit::Seconds)
    }

    /// What a statement writes.
    pub fn writing(self, what: &str, before: &Cost, after: &Cost) -> Table {
        self.row(&format!("{what}: bytes written"), before.logged, after.logged, Unit::Bytes).row(
            &format!("{what}: time"),
            seconds(before.time),
            seconds(after.time),
            Unit::Seconds,
        )
    }

    /// Shows it; a figure that was not measured is an error and not a zero.
    pub fn show(&self, screen: &Screen) -> Result<()> {
        screen.line("");
        screen.line(&screen.paint(Colour::Bold, &format!("  {:<48}{:>14}{:>14}   {}", "", "before", "after", "")));
        for (what, before, after, unit) in &self.rows {
            if !(*before > 0.0 && *after > 0.0) {
                return Err(format!("'{what}' could not be measured: {before} before, {after} after").into());
            }
            let (colour, verdict) = verdict(*before, *after);
            let line = format!("  {what:<48}{:>14}{:>14}   ", shown(*before, *unit), shown(*after, *unit));
            screen.line(&format!("{line}{}", screen.paint(colour, &verdict)));
        }
        screen.pause();
        Ok(())
    }
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// Costs are compared: less is better. What costs more is said as plainly.
fn verdict(before: f64, after: f64) -> (Colour, String) {
    let ratio = before / after;
    if (0.95..1.05).contains(&ratio) {
        (Colour::Dim, "the same".into())
    } else if ratio > 1.0 {
        (Colour::Green, format!("{} times less", times(ratio)))
    } else {
        (Colour::Red, format!("{} times more", times(1.0 / ratio)))
    }
}

fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.1}") } else { grouped(ratio.round() as u64) }
}

pub fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count if value < 10.0 && value.fract() != 0.0 => format!("{value:.1}"),
        Unit::Count => grouped(value.round() as u64),
        Unit::Bytes if value < 1024.0 => format!("{} B", value.round()),
        Unit::Bytes if value < 1024.0 * 1024.0 => format!("{:.1} KiB", value / 1024.0),
        Unit::Bytes => format!("{:.1} MiB", value / (1024.0 * 1024.0)),
        Unit::Seconds if value < 1e-3 => format!("{:.0} µs", value * 1e6),
        Unit::Seconds if value < 1.0 => format!("{:.1} ms", value * 1e3),
        Unit::Seconds => format!("{value:.2} s"),
    }
}

/// `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_as_people_write_them() {
        assert_eq!(shown(1_234_567.0, Unit::Count), "1,234,567");
        assert_eq!(shown(1.5, Unit::Count), "1.5");
        assert_eq!(shown(2048.0, Unit::Bytes), "2.0 KiB");
        assert_eq!(shown(0.000_25, Unit::Seconds), "250 µs");
        assert_eq!(verdict(10.0, 5.0).1, "2.0 times less");
        assert_eq!(verdict(1.0, 20.0).1, "20 times more");
        assert_eq!(verdict(1.0, 1.01).1, "the same");
    }

    #[test]
    fn what_was_not_measured_is_not_shown() {
        let screen = Screen::new();
        assert!(Table::new().row("nothing", 0.0, 1.0, Unit::Count).show(&screen).is_err());
        assert!(Table::new().row("not a number", f64::NAN, 1.0, Unit::Count).show(&screen).is_err());
    }
}
