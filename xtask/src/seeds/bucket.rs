//! Readings of a sensor in one document an hour. The texts show the document and leave "find or create the right bucket" to
//! the reader; this is the usual way to write it, twice: with a find before the write, and as an upsert.

use bson::{DateTime, Document, doc};

use super::{find_one, insert, update_one};
use crate::client::Client;
use crate::error::Result;

const HOUR_MS: i64 = 3_600_000;
pub const BUCKETS: &str = "sensorBuckets";

/// One reading.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub sensor: i32,
    pub ts_ms: i64,
    pub temp: f64,
}

impl Reading {
    fn window(&self) -> (DateTime, DateTime) {
        let start = self.ts_ms.div_euclid(HOUR_MS) * HOUR_MS;
        (DateTime::from_millis(start), DateTime::from_millis(start + HOUR_MS))
    }

    fn measurement(&self) -> Document {
        doc! { "ts": DateTime::from_millis(self.ts_ms), "temp": self.temp }
    }
}

/// Finds the bucket of the hour, or makes it; the figures are computed by the application.
pub fn add_reading(client: &mut Client, db: &str, reading: &Reading) -> Result<()> {
    let (start, end) = reading.window();
    let by_window = doc! { "sensorId": reading.sensor, "bucketDate": start };
    let Some(bucket) = find_one(client, db, BUCKETS, by_window.clone())? else {
        let temp = reading.temp;
        let bucket = doc! {
            "sensorId": reading.sensor, "bucketDate": start, "bucketEndDate": end,
            "measurements": [reading.measurement()],
            "stats": { "count": 1, "tempMin": temp, "tempMax": temp, "tempAvg": temp },
        };
        return insert(client, db, BUCKETS, vec![bucket]);
    };
    let stats = bucket.get_document("stats")?;
    let count = super::as_number(stats.get("count"));
    let average = (stats.get_f64("tempAvg")? * count as f64 + reading.temp) / (count + 1) as f64;
    let change = doc! {
        "$push": { "measurements": reading.measurement() },
        "$inc": { "stats.count": 1 },
        "$min": { "stats.tempMin": reading.temp },
        "$max": { "stats.tempMax": reading.temp },
        "$set": { "stats.tempAvg": average },
    };
    update_one(client, db, BUCKETS, doc! { "_id": bucket.get("_id").cloned() }, change).map(drop)
}

/// The same in one command, which is the fastest that can be written by hand; it keeps a sum instead of an average. It needs
/// a unique index on sensor and hour, and bounds no bucket.
pub fn upsert(db: &str, reading: &Reading) -> Document {
    let (start, end) = reading.window();
    let change = doc! {
        "$push": { "measurements": reading.measurement() },
        "$inc": { "stats.count": 1, "stats.tempSum": reading.temp },
        "$min": { "stats.tempMin": reading.temp },
        "$max": { "stats.tempMax": reading.temp },
        "$setOnInsert": { "bucketEndDate": end },
    };
    let query = doc! { "sensorId": reading.sensor, "bucketDate": start };
    doc! { "update": BUCKETS, "updates": [{ "q": query, "u": change, "upsert": true }], "$db": db }
}
