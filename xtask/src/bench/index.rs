//! Reads through secondary indexes.

use bson::doc;

use super::load::Requests;
use super::template::{INT32_MARK, INT64_MARK, Template};
use super::{CONNECTIONS, On, Row, Stream, data};
use crate::error::Result;
use crate::random::Random;

pub static TEN: Row = Row {
    name: "find-index",
    what: "find of 10 documents by a secondary index",
    on: On::Big,
    replica_set: false,
    connections: CONNECTIONS,
    prepare: |_| Ok(()),
    requests: ten,
};

pub static RANGE: Row = Row {
    name: "find-range",
    what: "find by equality and range on a compound index, sorted by it, limit 20",
    on: On::Big,
    replica_set: false,
    connections: CONNECTIONS,
    prepare: |_| Ok(()),
    requests: range,
};

struct Ten {
    template: Template,
    random: Random,
    keys: u64,
}

fn ten(stream: Stream) -> Result<Box<dyn Requests>> {
    let template = Template::new(&doc! { "find": data::BIG, "filter": { "k": INT32_MARK } })?.expecting(1, 0, 0)?;
    Ok(Box::new(Ten { template, random: stream.random, keys: stream.documents / data::PER_KEY }))
}

impl Requests for Ten {
    fn next(&mut self) -> &[u8] {
        self.template.set_int32(0, self.random.below(self.keys) as i32);
        self.template.bytes()
    }

    fn reply_bytes_min(&self) -> usize {
        10 * 500
    }
}

struct Range {
    template: Template,
    random: Random,
}

fn range(stream: Stream) -> Result<Box<dyn Requests>> {
    let filter = doc! { "group": INT32_MARK, "ts": { "$gte": INT64_MARK } };
    let command = doc! { "find": data::BIG, "filter": filter, "sort": { "ts": 1 }, "limit": 20 };
    let template = Template::new(&command)?.expecting(1, 1, 0)?;
    Ok(Box::new(Range { template, random: stream.random }))
}

impl Requests for Range {
    fn next(&mut self) -> &[u8] {
        self.template.set_int32(0, self.random.below(data::GROUPS) as i32);
        // Half of the values, so that twenty documents are always left.
        self.template.set_int64(0, self.random.below(500_000) as i64);
        self.template.bytes()
    }

    fn reply_bytes_min(&self) -> usize {
        20 * 500
    }
}
