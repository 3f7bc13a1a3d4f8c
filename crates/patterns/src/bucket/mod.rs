//! `bucket`: many small records, stored many to a document. Clients read and write flat readings; a bucket holds the
//! readings of one group (`by`) and one window of time, with figures about them.
//!
//! A bucket of the collection `readings`, declared with `by: ["sensorId"], time: "ts", every: "1h"`:
//!
//! ```text
//! { _id, sensorId, bucketDate, bucketEndDate, part, measurements: [ { _id, ts, temp } … ], whole: [ 3 ],
//!   stats: { count, tempMin, tempMax, tempSum, tempCount, tempAvg } }
//! ```
//!
//! `part` counts the buckets of one window from the second on. A reading is stored without its `by` fields if they can
//! be put back behind `_id` exactly as they were; the positions of those that are stored as they came are in `whole`.
//!
//! Invariant: every reading is in exactly one bucket, that of its `by` values and its window; `stats` is what a
//! recomputation gives; there is one bucket for each (`by`, window, part), none is empty, and none holds more than
//! `maxCount` readings or, unless it holds only one, `maxBytes` bytes of them. With `key`, no two readings of a window
//! have the same key.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `by` | none | paths whose values a bucket's readings share |
//! | `time`, `every` | none | path of the date, and the width of a window: `10s`, `15m`, `1h`, `1d`, `1w`, `1mo`, `1y` |
//! | `maxCount` | 1000 | most readings in a bucket |
//! | `maxBytes` | 1 MiB | most bytes of readings in a bucket |
//! | `into` | `readingsBuckets` for `readings` | collection of the buckets |
//! | `items` | `measurements` with `time`, else `items` | field of a bucket with its readings |
//! | `start`, `end` | `bucketDate`, `bucketEndDate` | fields of a bucket with the bounds of its window |
//! | `stats` | none | `{ temp: ["min", "max", "avg", "sum", "count"] }` |
//! | `key` | none | paths whose values no two readings of a window share |

mod check;
mod declare;
mod delete;
mod exact;
mod explain;
mod find;
mod group;
mod indexes;
mod insert;
mod layout;
mod many;
mod migrate;
mod narrow;
mod place;
mod reading;
mod standing;
mod stats;
mod stored;
mod taken;
mod update;
mod window;
mod windows;

use std::sync::Arc;

use espalier_store::Namespace;
use espalier_value::Path;

pub use declare::BUCKET;

use stats::Stats;
use window::Every;

/// A declaration, read.
#[derive(Clone, Debug)]
pub struct Bucket {
    by: Vec<Path>,
    time: Option<Time>,
    max_count: usize,
    max_bytes: usize,
    into: Box<str>,
    items: Box<str>,
    stats: Arc<Stats>,
    key: Vec<Path>,
}

/// How readings are divided by time.
#[derive(Clone, Debug)]
struct Time {
    path: Path,
    every: Every,
    start: Box<str>,
    end: Box<str>,
}

/// The field of a bucket with its number among those of one window; the first has none.
const PART: &str = "part";
/// The field of a bucket with the positions of the readings that are stored with their `by` fields.
const WHOLE: &str = "whole";
const STATS: &str = "stats";

impl Bucket {
    fn buckets(&self, ns: &Namespace) -> Namespace {
        Namespace::new(ns.db(), &self.into)
    }
}
