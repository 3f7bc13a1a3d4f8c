//! Readings of sensors: inserted one by one, kept on disk, and averaged by the day.

use std::time::Instant;

use bson::{DateTime, Document, doc};

use super::{Both, CONNECTIONS, DB, bound, drive_for, verdict};
use crate::client::Client;
use crate::crash::read_all;
use crate::error::{Result, err};
use crate::process::Killable;
use crate::seeds::bucket::{BUCKETS, Reading, upsert};

const FLAT: &str = "readings_flat";
const DECLARED: &str = "readings";
const SERIES: &str = "readings_series";
const SENSORS: u64 = 100;
/// Readings for the figures on disk and for the daily averages.
const READINGS: u64 = 1_000_000;
const BATCH: u64 = 5_000;

/// A reading every ten seconds from each of the sensors.
fn reading(number: u64) -> Reading {
    let step = (number / SENSORS) as i64;
    let temp = 20.0 + (number % 97) as f64 / 10.0;
    Reading { sensor: (number % SENSORS) as i32, ts_ms: 1_767_225_600_000 + step * 10_000, temp }
}

fn flat(number: u64) -> Document {
    let Reading { sensor, ts_ms, temp } = reading(number);
    doc! { "sensorId": sensor, "ts": DateTime::from_millis(ts_ms), "temp": temp, "humidity": 45.0 + temp / 10.0 }
}

fn declare(client: &mut Client) -> Result<()> {
    client.run(DB, &doc! { "drop": DECLARED })?;
    let stats = doc! { "temp": ["min", "max", "avg"], "humidity": ["min", "max", "avg"] };
    let bucket = doc! { "by": ["sensorId"], "time": "ts", "every": "1h", "into": "declaredBuckets", "stats": stats };
    client.must(DB, &doc! { "create": DECLARED, "patterns": [{ "bucket": bucket }] }).map(drop)
}

fn insert_one(collection: &'static str) -> impl Fn(&mut Client, u64) -> Result<()> + Sync {
    move |client, number| {
        let insert = doc! { "insert": collection, "documents": [flat(number)], "writeConcern": { "w": 1, "j": false } };
        client.must(DB, &insert).map(drop)
    }
}

pub fn insert(both: &Both<'_>) -> Result<()> {
    let row = "bucket-insert";
    let mut client = both.espalier.connect()?;
    declare(&mut client)?;
    let declared = drive_for(both.espalier, CONNECTIONS, both.duration, insert_one(DECLARED))?;
    println!("{row:<16} espalier, declared: {declared}");
    let mut client = both.mongod.connect()?;
    client.run(DB, &doc! { "drop": BUCKETS })?;
    let index = doc! { "key": { "sensorId": 1, "bucketDate": 1 }, "name": "window", "unique": true };
    client.must(DB, &doc! { "createIndexes": BUCKETS, "indexes": [index] })?;
    let hand = drive_for(both.mongod, CONNECTIONS, both.duration, |client, number| {
        let mut upsert = upsert(DB, &reading(number));
        upsert.remove("$db");
        upsert.insert("writeConcern", doc! { "w": 1, "j": false });
        client.must(DB, &upsert).map(drop)
    })?;
    println!("{row:<16} mongod, upsert by hand: {hand}");
    verdict(row, "declared / upsert by hand on mongod", declared.per_second() / hand.per_second(), 2.0);
    client.run(DB, &doc! { "drop": SERIES })?;
    let series = doc! { "timeField": "ts", "metaField": "sensorId", "granularity": "minutes" };
    client.must(DB, &doc! { "create": SERIES, "timeseries": series })?;
    let series = drive_for(both.mongod, CONNECTIONS, both.duration, insert_one(SERIES))?;
    println!("{row:<16} mongod, time-series collection: {series}");
    verdict(row, "declared / mongod's time-series collection", declared.per_second() / series.per_second(), 1.0);
    Ok(())
}

fn load(server: &dyn Killable, collection: &str) -> Result<()> {
    let mut client = server.connect()?;
    for first in (0..READINGS).step_by(BATCH as usize) {
        let documents: Vec<Document> = (first..first + BATCH).map(flat).collect();
        client.must(DB, &doc! { "insert": collection, "documents": documents })?;
    }
    client.must("admin", &doc! { "fsync": 1 }).map(drop)
}

/// Bytes on disk of some collections.
fn stored(client: &mut Client, collections: &[&str]) -> Result<f64> {
    let mut bytes = 0.0;
    for collection in collections {
        let stats = client.must(DB, &doc! { "collStats": *collection })?;
        bytes += crate::seeds::as_number(stats.get("storageSize")) as f64;
        bytes += crate::seeds::as_number(stats.get("totalIndexSize")) as f64;
    }
    Ok(bytes)
}

pub fn daily(both: &Both<'_>) -> Result<()> {
    let row = "bucket-daily";
    let mut espalier = both.espalier.connect()?;
    declare(&mut espalier)?;
    load(both.espalier, DECLARED)?;
    espalier.run(DB, &doc! { "drop": FLAT })?;
    load(both.espalier, FLAT)?;
    let mut mongod = both.mongod.connect()?;
    mongod.run(DB, &doc! { "drop": FLAT })?;
    load(both.mongod, FLAT)?;
    let day = doc! { "$dateTrunc": { "date": "$ts", "unit": "day" } };
    let group = doc! { "_id": day, "avg": { "$avg": "$temp" }, "n": { "$sum": 1 } };
    let pipeline = vec![doc! { "$group": group }, doc! { "$sort": { "_id": 1 } }];
    let days = |client: &mut Client, collection: &str| -> Result<(f64, Vec<Document>)> {
        let mut best = f64::MAX;
        let mut found = Vec::new();
        for _ in 0..3 {
            let begun = Instant::now();
            found = read_all(client, DB, &doc! { "aggregate": collection, "pipeline": &pipeline, "cursor": {} })?;
            best = best.min(begun.elapsed().as_secs_f64());
        }
        Ok((best, found))
    };
    let (declared, own) = days(&mut espalier, DECLARED)?;
    let (flat, reference) = days(&mut mongod, FLAT)?;
    same(&own, &reference)?;
    println!(
        "{row:<16} {READINGS} readings: espalier, declared {:.1} ms; mongod, flat {:.1} ms",
        declared * 1e3,
        flat * 1e3
    );
    verdict(row, "daily averages, declared / flat $group on mongod", flat / declared, 20.0);
    // Declared buckets are read under the logical collection's name as well; `rawData` would tell of them alone.
    let own = stored(&mut espalier, &[DECLARED])?;
    let (own_flat, their_flat) = (stored(&mut espalier, &[FLAT])?, stored(&mut mongod, &[FLAT])?);
    println!(
        "{row:<16} on disk with indexes: declared {:.1} MB, flat {:.1} MB, mongod flat {:.1} MB",
        own / 1e6,
        own_flat / 1e6,
        their_flat / 1e6
    );
    bound(row, "bytes on disk, declared / flat", own / own_flat.max(1.0), 1.0);
    Ok(())
}

/// Both servers must have computed the same.
fn same(own: &[Document], reference: &[Document]) -> Result<()> {
    let figures = |days: &[Document]| -> Vec<(i64, i64)> {
        days.iter()
            .map(|day| {
                let average = day.get_f64("avg").unwrap_or(f64::NAN);
                (crate::seeds::as_number(day.get("n")), (average * 1e6).round() as i64)
            })
            .collect()
    };
    if figures(own) == figures(reference) { Ok(()) } else { Err(err!("{own:?}\nis not\n{reference:?}")) }
}
