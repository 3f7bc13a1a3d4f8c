//! The table.

use std::time::Duration;

use super::Row;
use super::load::Measurement;

pub fn header() {
    println!(
        "\n{:<12} {:>5}  {:<22} {:<9} {:>44}   {:>44}",
        "row",
        "conns",
        "ratio (min..max)",
        "cpu ratio",
        "espalier: per second, p50, p99, cpu per op",
        "mongod: per second, p50, p99, cpu per op"
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
    let cpu = cpu_median(&reference) / cpu_median(&own).max(f64::MIN_POSITIVE);
    println!(
        "{:<12} {connections:>5}  {ratio:<22} {cpu:<9.2} {:>44}   {:>44}",
        row.name,
        median(&own),
        median(&reference)
    );
    if connections == row.connections.last().copied().unwrap_or(0) {
        println!("{:<12} {}", "", row.what);
    }
}

fn cpu_median(measurements: &[&Measurement]) -> f64 {
    let mut cpus: Vec<f64> = measurements.iter().map(|measurement| measurement.cpu.as_secs_f64()).collect();
    cpus.sort_by(f64::total_cmp);
    cpus.get(cpus.len() / 2).copied().unwrap_or(0.0)
}

fn median(measurements: &[&Measurement]) -> String {
    let mut sorted = measurements.to_vec();
    sorted.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    let Some(middle) = sorted.get(sorted.len() / 2) else { return String::new() };
    format!("{:.0}, {}, {}, {}", middle.per_second, time(middle.p50), time(middle.p99), time(middle.cpu))
}

fn time(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    if micros < 10.0 {
        format!("{micros:.2} µs")
    } else if micros < 1000.0 {
        format!("{micros:.0} µs")
    } else {
        format!("{:.1} ms", micros / 1000.0)
    }
}
