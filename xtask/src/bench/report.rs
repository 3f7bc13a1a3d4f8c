//! The table.

use std::time::Duration;

use super::Row;
use super::load::Measurement;

pub fn header() {
    println!(
        "\n{:<12} {:>5}  {:<22} {:>36}   {:>36}",
        "row", "conns", "ratio (min..max)", "espalier: per second, p50, p99", "mongod: per second, p50, p99"
    );
}

/// A line: the median of the rounds' ratios with their spread, and the median round of both servers.
pub fn row(row: &Row, connections: usize, rounds: &[(Measurement, Measurement)]) {
    let mut ratios: Vec<f64> = rounds.iter().map(|(own, reference)| own.per_second / reference.per_second).collect();
    ratios.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else { return };
    let middle = f64::midpoint(ratios[(ratios.len() - 1) / 2], ratios[ratios.len() / 2]);
    let ratio = format!("{middle:.2} ({least:.2}..{most:.2})");
    let own: Vec<&Measurement> = rounds.iter().map(|(own, _)| own).collect();
    let reference: Vec<&Measurement> = rounds.iter().map(|(_, reference)| reference).collect();
    println!("{:<12} {connections:>5}  {ratio:<22} {:>36}   {:>36}", row.name, median(&own), median(&reference));
    if connections == row.connections.last().copied().unwrap_or(0) {
        println!("{:<12} {}", "", row.what);
    }
}

fn median(measurements: &[&Measurement]) -> String {
    let mut sorted = measurements.to_vec();
    sorted.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    let Some(middle) = sorted.get(sorted.len() / 2) else { return String::new() };
    format!("{:.0}, {}, {}", middle.per_second, time(middle.p50), time(middle.p99))
}

fn time(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    if micros < 1000.0 { format!("{micros:.0} µs") } else { format!("{:.1} ms", micros / 1000.0) }
}
