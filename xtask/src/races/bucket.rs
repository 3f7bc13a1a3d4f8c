//! Readings: sixteen devices send into the same hours.

use std::collections::BTreeMap;

use bson::{DateTime, Document, doc};

use super::{CLIENTS, Counts, DB, Race, together};
use crate::client::Client;
use crate::crash::read_all;
use crate::error::Result;
use crate::seeds::as_number;
use crate::seeds::bucket::{BUCKETS, Reading, add_reading};

pub static RACE: Race = Race {
    name: "bucket",
    what: "800 readings of 2 sensors in 10 hours by 16 clients, found-or-created buckets with their averages",
    by_hand,
    declared: Some(declared),
};

const EACH: usize = 50;
const SENSORS: i32 = 2;
const HOURS: i64 = 10;

fn reading(client: usize, n: usize) -> Reading {
    let number = (client * EACH + n) as i64;
    // Everybody is in the same hour at the same time.
    let hour = n as i64 * HOURS / EACH as i64;
    Reading {
        sensor: number as i32 % SENSORS,
        ts_ms: hour * 3_600_000 + number % 3_600 * 1_000,
        temp: (number % 40) as f64,
    }
}

fn by_hand(port: u16) -> Result<Counts> {
    let failed = together(port, CLIENTS, |client, number| {
        Ok((0..EACH).filter(|n| add_reading(client, DB, &reading(number, *n)).is_err()).count() as u64)
    })?;
    judge(&mut Client::connect(port)?, failed.into_iter().sum())
}

fn declared(port: u16) -> Result<Counts> {
    let mut client = Client::connect(port)?;
    let bucket = doc! {
        "by": ["sensorId"], "time": "ts", "every": "1h", "into": BUCKETS, "stats": { "temp": ["min", "max", "avg"] },
    };
    client.must(DB, &doc! { "create": "readings", "patterns": [{ "bucket": bucket }] })?;
    let failed = together(port, CLIENTS, |client, number| {
        let mut failed = 0;
        for n in 0..EACH {
            let Reading { sensor, ts_ms, temp } = reading(number, n);
            let document = doc! { "sensorId": sensor, "ts": DateTime::from_millis(ts_ms), "temp": temp };
            failed += u64::from(client.must(DB, &doc! { "insert": "readings", "documents": [document] }).is_err());
        }
        Ok(failed)
    })?;
    judge(&mut client, failed.into_iter().sum())
}

/// Looks at the buckets, which have the same shape either way.
fn judge(client: &mut Client, failed: u64) -> Result<Counts> {
    let (mut windows, mut stored, mut wrong) = (BTreeMap::<String, u64>::new(), 0, 0);
    for bucket in read_all(client, DB, &doc! { "find": BUCKETS })? {
        // The pattern divides an hour into parts, of which it numbers all but the first.
        let window = format!("{:?} {:?} {:?}", bucket.get("sensorId"), bucket.get("bucketDate"), bucket.get("part"));
        *windows.entry(window).or_default() += 1;
        let temps: Vec<f64> =
            bucket.get_array("measurements")?.iter().filter_map(|m| m.as_document()?.get_f64("temp").ok()).collect();
        stored += temps.len() as u64;
        wrong += u64::from(!figures_hold(bucket.get_document("stats")?, &temps));
    }
    let asked = (CLIENTS * EACH) as u64 - failed;
    let twice = windows.values().map(|buckets| buckets - 1).sum();
    Ok(vec![
        ("readings failed", failed),
        ("lost or doubled", asked.abs_diff(stored)),
        ("second buckets of an hour", twice),
        ("buckets with wrong figures", wrong),
    ])
}

fn figures_hold(stats: &Document, temps: &[f64]) -> bool {
    let average = temps.iter().sum::<f64>() / temps.len() as f64;
    as_number(stats.get("count")) == temps.len() as i64
        && stats.get_f64("tempAvg").is_ok_and(|stored| (stored - average).abs() < 1e-6)
}
