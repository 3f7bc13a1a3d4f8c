//! Sensors in the workshop, each with a reading every ten seconds.

use espalier_value::{DocBuf, ValueRef, doc};

use super::client::number;
use super::guide::{AFTER, BEFORE, Guide, aggregate, list};
use super::shop::{DAY, HOUR_MS};
use super::table::{Table, Unit, grouped};
use super::{Chapter, Result};

pub static CHAPTER: Chapter = Chapter {
    name: "bucket",
    title: "many small records",
    problem: "A sensor in the workshop reports every ten seconds: 8,640 documents a day, each with its own _id and index entries, \
              and most of them are only ever read as an average.",
    tell,
};

const SENSORS: usize = 4;
const READINGS: usize = 8_640;
const TIMES: usize = 10;

fn tell(guide: &mut Guide) -> Result<()> {
    let (count, mut random) = (guide.scaled(READINGS, 360), guide.random());
    let mut readings = Vec::new();
    for sensor in 0..SENSORS {
        for at in 0..count {
            let temp = 20.0 + random.below(60) as f64 / 10.0;
            readings.push(doc! {
                "_id": (sensor * count + at) as i32, "sensorId": &format!("SENSOR-{sensor}"),
                "ts": ValueRef::DateTime(DAY + at as i64 * 10_000),
                "temp": temp, "humidity": 40.0 + random.below(100) as f64 / 10.0,
            });
        }
    }
    guide.insert(BEFORE, "readings", &readings)?;
    let key = doc! { "sensorId": 1, "ts": 1 };
    let index = doc! { "key": &key, "name": "sensorId_1_ts_1" };
    guide.run(BEFORE, &doc! { "createIndexes": "readings", "indexes": &list(&[index]) })?;
    guide.say(&format!(
        "A day of {SENSORS} sensors, {} readings, with an index on sensor and time. What was the day like?",
        grouped(readings.len() as u64)
    ));
    guide.show(
        "db.readings.aggregate([\n  { $match: { sensorId: \"SENSOR-1\", ts: { $gte: day, $lt: nextDay } } },\n  \
         { $group: { _id: null, average: { $avg: \"$temp\" }, coldest: { $min: \"$temp\" }, warmest: { $max: \"$temp\" } } } ])",
    );
    let day = |_: usize| {
        let span = doc! { "$gte": ValueRef::DateTime(DAY), "$lt": ValueRef::DateTime(DAY + 24 * HOUR_MS) };
        let group = doc! {
            "_id": ValueRef::Null, "average": &doc! { "$avg": "$temp" }, "coldest": &doc! { "$min": "$temp" },
            "warmest": &doc! { "$max": "$temp" },
        };
        vec![aggregate(
            "readings",
            &[doc! { "$match": &doc! { "sensorId": "SENSOR-1", "ts": &span } }, doc! { "$group": &group }],
        )]
    };
    let before = guide.measure(BEFORE, TIMES, day)?;
    let by: espalier_value::ArrayBuf = [ValueRef::String("sensorId")].into_iter().collect();
    let figures: espalier_value::ArrayBuf = ["min", "max", "avg"].into_iter().map(ValueRef::String).collect();
    let bucket = doc! {
        "by": &by, "time": "ts", "every": "1h", "into": "sensorBuckets", "stats": &doc! { "temp": &figures },
    };
    guide.declare(&doc! { "create": "readings", "patterns": &list(&[doc! { "bucket": &bucket }]) })?;
    guide.insert(AFTER, "readings", &readings)?;
    guide.say("The same readings, inserted the same way, and the same question. They are stored an hour to a document, with figures:");
    let after = guide.measure(AFTER, TIMES, day)?;
    let (stored_before, stored_after) = (stored(guide, BEFORE, "readings")?, stored(guide, AFTER, "sensorBuckets")?);
    Table::new()
        .reading("the day's figures", &before, &after)
        .row("documents stored", stored_before.0, stored_after.0, Unit::Count)
        .row("bytes of documents", stored_before.1, stored_after.1, Unit::Bytes)
        .show(guide.screen())?;
    guide.say("Readings are still found, corrected and deleted one by one, and the figures follow.");
    Ok(())
}

/// Documents of a collection and their bytes.
fn stored(guide: &mut Guide, db: &str, collection: &str) -> Result<(f64, f64)> {
    let stats: DocBuf = guide.run(db, &doc! { "collStats": collection })?;
    Ok((number(stats.as_raw(), &["count"]), number(stats.as_raw(), &["size"])))
}
