//! Inserts: one document of 500 bytes, the same with the journal awaited, and 1,000 in one command.

use bson::{Bson, Document, doc};

use super::load::Requests;
use super::template::{Template, object_id_mark};
use super::{CONNECTIONS, DB, On, Row, Stream, data};
use crate::client::Client;
use crate::error::Result;

pub static ONE: Row = Row {
    name: "insert",
    what: "insert of one document of 500 bytes, w: 1",
    on: On::Nothing,
    replica_set: false,
    connections: CONNECTIONS,
    prepare,
    requests: |stream| requests(stream, 1, false),
};

pub static ONE_JOURNALED: Row = Row {
    name: "insert-j",
    what: "insert of one document of 500 bytes, j: true",
    on: On::Nothing,
    replica_set: false,
    connections: CONNECTIONS,
    prepare,
    requests: |stream| requests(stream, 1, true),
};

pub static THOUSAND: Row = Row {
    name: "insert-1000",
    what: "insert of 1,000 documents of 500 bytes in a command, documents a second",
    on: On::Nothing,
    replica_set: false,
    connections: CONNECTIONS,
    prepare,
    requests: |stream| requests(stream, 1_000, false),
};

fn prepare(client: &mut Client) -> Result<()> {
    client.run(DB, &doc! { "drop": "inserted" })?;
    client.must(DB, &doc! { "create": "inserted" })?;
    Ok(())
}

struct Inserts {
    template: Template,
    count: usize,
    next: u64,
    prefix: u32,
}

fn requests(mut stream: Stream, count: usize, journaled: bool) -> Result<Box<dyn Requests>> {
    let documents: Vec<Bson> = (0..count)
        .map(|_| {
            let mut document: Document = doc! { "_id": object_id_mark(), "n": 1i64 };
            document.insert("fill", data::text(500 - 47, &mut stream.random));
            document.into()
        })
        .collect();
    let command = doc! { "insert": "inserted", "documents": documents, "writeConcern": { "w": 1, "j": journaled } };
    let template = Template::new(&command)?.expecting(0, 0, count)?;
    let prefix = ((stream.run as u32) << 8) | stream.connection as u32;
    Ok(Box::new(Inserts { template, count, next: 0, prefix }))
}

impl Requests for Inserts {
    fn next(&mut self) -> &[u8] {
        for number in 0..self.count {
            // As drivers make them: rising, and never the same on two connections.
            let mut id = [0; 12];
            id[..8].copy_from_slice(&self.next.to_be_bytes());
            id[8..].copy_from_slice(&self.prefix.to_be_bytes());
            self.template.set_object_id(number, id);
            self.next += 1;
        }
        self.template.bytes()
    }

    fn operations(&self) -> u64 {
        self.count as u64
    }
}
