//! A report over everything.

use bson::doc;

use super::load::Requests;
use super::template::Template;
use super::{On, Row, Stream, data};
use crate::error::Result;

pub static GROUP: Row = Row {
    name: "group",
    what: "$group over the whole large collection, documents a second",
    on: On::Big,
    replica_set: false,
    connections: &[1],
    prepare: |_| Ok(()),
    requests,
};

struct Scan {
    template: Template,
    documents: u64,
}

fn requests(stream: Stream) -> Result<Box<dyn Requests>> {
    // `fill` is no part of any index, so that the documents themselves have to be read.
    let group = doc! { "$group": { "_id": "$group", "n": { "$sum": 1 }, "ts": { "$avg": "$ts" }, "last": { "$max": "$fill" } } };
    let command = doc! { "aggregate": data::BIG, "pipeline": [group], "cursor": {} };
    Ok(Box::new(Scan { template: Template::new(&command)?, documents: stream.documents }))
}

impl Requests for Scan {
    fn next(&mut self) -> &[u8] {
        self.template.bytes()
    }

    fn operations(&self) -> u64 {
        self.documents
    }

    fn reply_bytes_min(&self) -> usize {
        data::GROUPS as usize * 100
    }
}
