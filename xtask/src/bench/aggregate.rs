//! Aggregations: a report each, by one connection, counted in documents read.

use bson::{Document, doc};

use super::load::Requests;
use super::small::{BASKETS, CUSTOMERS, ENTRIES, ORDERS, PARTS, READINGS, SERIES, count};
use super::template::Template;
use super::{On, Row, Stream};
use crate::error::Result;

pub static GROUP: Row = Row {
    name: "agg-group",
    what: "$group with $sum, $avg, $min and $max over all small documents, documents a second",
    requests: |stream| {
        let group = doc! { "$group": { "_id": "$sensor", "n": { "$sum": "$count" }, "avg": { "$avg": "$value" },
        "min": { "$min": "$value" }, "max": { "$max": "$value" } } };
        let documents = stream.documents;
        report(READINGS, &[group], documents, 10_000)
    },
    ..BASE
};

pub static MATCH_GROUP: Row = Row {
    name: "agg-match",
    what: "$match of an indexed tenth and $group, documents a second",
    requests: |stream| {
        let group = doc! { "$group": { "_id": "$sensor", "sum": { "$sum": "$value" }, "n": { "$sum": 1 } } };
        let documents = stream.documents / PARTS;
        report(READINGS, &[doc! { "$match": { "part": 3 } }, group], documents, 1_000)
    },
    ..BASE
};

pub static LOOKUP: Row = Row {
    name: "agg-lookup",
    what: "$lookup of each order's customer by an index, then $group by city, orders a second",
    requests: |stream| {
        let lookup = doc! { "$lookup": { "from": CUSTOMERS, "localField": "customer", "foreignField": "number",
        "as": "customer" } };
        let group = doc! { "$group": { "_id": { "$first": "$customer.city" }, "total": { "$sum": "$total" } } };
        report(ORDERS, &[lookup, group], count(ORDERS, stream.documents), 500)
    },
    ..BASE
};

pub static SORT_LIMIT: Row = Row {
    name: "agg-sort",
    what: "$sort and $limit 20 without an index, documents a second",
    requests: |stream| {
        let stages = [doc! { "$sort": { "value": -1, "_id": 1 } }, doc! { "$limit": 20 }];
        report(READINGS, &stages, stream.documents, 1_000)
    },
    ..BASE
};

pub static UNWIND: Row = Row {
    name: "agg-unwind",
    what: "$unwind of arrays of 100 and $group, entries a second",
    requests: |stream| {
        let group = doc! { "$group": { "_id": "$items.sku", "sold": { "$sum": "$items.quantity" } } };
        let entries = count(BASKETS, stream.documents) * ENTRIES;
        report(BASKETS, &[doc! { "$unwind": "$items" }, group], entries, 5_000)
    },
    ..BASE
};

pub static BUCKET_AUTO: Row = Row {
    name: "agg-bucket",
    what: "$bucketAuto with 10 buckets, documents a second",
    requests: |stream| {
        let bucket = doc! { "$bucketAuto": { "groupBy": "$value", "buckets": 10, "output": { "n": { "$sum": 1 },
        "avg": { "$avg": "$count" } } } };
        report(READINGS, &[bucket], stream.documents, 500)
    },
    ..BASE
};

pub static WINDOW: Row = Row {
    name: "agg-window",
    what: "$setWindowFields with a moving average by sensor, then $group, documents a second",
    requests: |stream| {
        let window = doc! { "$setWindowFields": { "partitionBy": "$sensor", "sortBy": { "t": 1 }, "output": {
            "moving": { "$avg": "$value", "window": { "documents": [-10, 0] } },
            "total": { "$sum": "$value", "window": { "documents": ["unbounded", "current"] } },
        } } };
        let group =
            doc! { "$group": { "_id": "$sensor", "peak": { "$max": "$moving" }, "last": { "$max": "$total" } } };
        report(SERIES, &[window, group], count(SERIES, stream.documents), 2_000)
    },
    ..BASE
};

const BASE: Row = Row {
    name: "",
    what: "",
    on: On::Small,
    replica_set: false,
    connections: &[1],
    prepare: |_| Ok(()),
    requests: |_: Stream| report(READINGS, &[], 0, 0),
};

struct Report {
    template: Template,
    documents: u64,
    reply_bytes_min: usize,
}

fn report(
    collection: &str,
    pipeline: &[Document],
    documents: u64,
    reply_bytes_min: usize,
) -> Result<Box<dyn Requests>> {
    // As large as the answer, so that one message holds it all.
    let cursor = doc! { "batchSize": 100_000 };
    let command =
        doc! { "aggregate": collection, "pipeline": pipeline.to_vec(), "cursor": cursor, "allowDiskUse": true };
    Ok(Box::new(Report { template: Template::new(&command)?, documents, reply_bytes_min }))
}

impl Requests for Report {
    fn next(&mut self) -> &[u8] {
        self.template.bytes()
    }

    fn operations(&self) -> u64 {
        self.documents
    }

    fn reply_bytes_min(&self) -> usize {
        self.reply_bytes_min
    }
}
