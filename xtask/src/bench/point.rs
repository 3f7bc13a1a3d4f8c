//! Reads of one document.

use bson::doc;

use super::load::Requests;
use super::template::{INT32_MARK, Template};
use super::{CONNECTIONS, On, Row, Stream, data};
use crate::error::Result;
use crate::random::Random;

pub static BY_ID: Row = Row {
    name: "find-id",
    what: "find by _id in the large collection",
    on: On::Big,
    replica_set: false,
    connections: CONNECTIONS,
    prepare: |_| Ok(()),
    requests,
};

struct Points {
    template: Template,
    random: Random,
    documents: u64,
}

fn requests(stream: Stream) -> Result<Box<dyn Requests>> {
    let command = doc! { "find": data::BIG, "filter": { "_id": INT32_MARK }, "limit": 1, "singleBatch": true };
    let template = Template::new(&command)?.expecting(1, 0, 0)?;
    Ok(Box::new(Points { template, random: stream.random, documents: stream.documents }))
}

impl Requests for Points {
    fn next(&mut self) -> &[u8] {
        self.template.set_int32(0, self.random.below(self.documents) as i32);
        self.template.bytes()
    }

    fn reply_bytes_min(&self) -> usize {
        500
    }
}
