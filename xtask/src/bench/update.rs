//! Updates in place: a counter in random documents, in one hot document, and a bounded list.

use bson::{Bson, doc};

use super::load::Requests;
use super::template::{INT32_MARK, Template};
use super::{CONNECTIONS, DB, On, Row, Stream, data};
use crate::client::Client;
use crate::error::Result;
use crate::random::Random;

pub static INC: Row = Row {
    name: "inc",
    what: "$inc of a random document of the large collection",
    on: On::Big,
    replica_set: false,
    connections: CONNECTIONS,
    prepare: |_| Ok(()),
    requests: |stream| {
        let documents = stream.documents;
        increments(stream, data::BIG, documents)
    },
};

pub static INC_HOT: Row = Row {
    name: "inc-hot",
    what: "$inc of one hot document by all connections",
    on: On::Nothing,
    replica_set: false,
    connections: CONNECTIONS,
    prepare: |client| {
        client.run(DB, &doc! { "drop": "hot" })?;
        client.must(DB, &doc! { "insert": "hot", "documents": [{ "_id": 0, "n": 0i64 }] })?;
        Ok(())
    },
    requests: |stream| increments(stream, "hot", 1),
};

pub static INC_APPROXIMATE: Row = Row {
    name: "inc-approximate",
    what: "$inc of one hot document by all connections, on Espalier with the pattern approximate",
    on: On::Nothing,
    replica_set: false,
    connections: &[8, 32],
    prepare: prepare_approximate,
    requests: |stream| increments(stream, "counters", 1),
};

pub static INC_APPROXIMATE_JOURNALED: Row = Row {
    name: "inc-approximate-j",
    what: "the same with j: true on both",
    on: On::Nothing,
    replica_set: false,
    connections: &[8, 32],
    prepare: prepare_approximate,
    requests: |stream| increments_with(stream, "counters", 1, true),
};

pub static PUSH: Row = Row {
    name: "push",
    what: "$push with $each, $sort and $slice into one of 10,000 lists of 10",
    on: On::Nothing,
    replica_set: false,
    connections: CONNECTIONS,
    prepare: prepare_lists,
    requests: pushes,
};

const LISTS: u64 = 10_000;

struct Patched {
    template: Template,
    random: Random,
    documents: u64,
    /// Further numbers to patch with anything, after the `_id`.
    scores: usize,
}

/// Plain `$inc` is what mongod has.
fn prepare_approximate(client: &mut Client) -> Result<()> {
    client.run(DB, &doc! { "drop": "counters" })?;
    let pattern = doc! { "approximate": { "fields": ["n"], "flush": { "count": 100, "within": "5s" } } };
    let declared = client.run(DB, &doc! { "create": "counters", "patterns": [pattern] })?;
    if declared.contains_key("code") {
        // The reference does not know what a pattern is.
        client.must(DB, &doc! { "create": "counters" })?;
    }
    client.must(DB, &doc! { "insert": "counters", "documents": [{ "_id": 0, "n": 0i64 }] })?;
    Ok(())
}

fn increments(stream: Stream, collection: &str, documents: u64) -> Result<Box<dyn Requests>> {
    increments_with(stream, collection, documents, false)
}

fn increments_with(stream: Stream, collection: &str, documents: u64, journaled: bool) -> Result<Box<dyn Requests>> {
    let update = doc! { "q": { "_id": INT32_MARK }, "u": { "$inc": { "n": 1i64 } } };
    let command = doc! { "update": collection, "updates": [update], "writeConcern": { "w": 1, "j": journaled } };
    let template = Template::new(&command)?.expecting(1, 0, 0)?;
    Ok(Box::new(Patched { template, random: stream.random, documents, scores: 0 }))
}

fn prepare_lists(client: &mut Client) -> Result<()> {
    client.run(DB, &doc! { "drop": "lists" })?;
    let documents: Vec<Bson> = (0..LISTS).map(|id| doc! { "_id": id as i32, "top": [] }.into()).collect();
    client.must(DB, &doc! { "insert": "lists", "documents": documents })?;
    Ok(())
}

fn pushes(stream: Stream) -> Result<Box<dyn Requests>> {
    let each = doc! { "score": INT32_MARK, "title": "a review of some length" };
    let push = doc! { "$each": [each], "$sort": { "score": -1 }, "$slice": 10 };
    let update = doc! { "q": { "_id": INT32_MARK }, "u": { "$push": { "top": push } } };
    let command = doc! { "update": "lists", "updates": [update], "writeConcern": { "w": 1, "j": false } };
    let template = Template::new(&command)?.expecting(2, 0, 0)?;
    Ok(Box::new(Patched { template, random: stream.random, documents: LISTS, scores: 1 }))
}

impl Requests for Patched {
    fn next(&mut self) -> &[u8] {
        self.template.set_int32(0, self.random.below(self.documents) as i32);
        for number in 1..=self.scores {
            self.template.set_int32(number, self.random.below(1_000_000) as i32);
        }
        self.template.bytes()
    }
}
