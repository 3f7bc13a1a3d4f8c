//! A transaction of two updates: three messages, counted once.

use bson::{Bson, doc};

use super::load::Requests;
use super::session::Session;
use super::template::{INT32_MARK, Template};
use super::{CONNECTIONS, DB, On, Row, Stream};
use crate::client::Client;
use crate::error::Result;
use crate::random::Random;

pub static TRANSACTION: Row = Row {
    name: "txn",
    what: "a transaction of two $inc in documents of the connection's own; mongod as a replica set of one member",
    on: On::Nothing,
    replica_set: true,
    connections: CONNECTIONS,
    prepare,
    requests,
};

/// Documents of each connection; no two connections meet, so that what is measured is not who gives way.
const OWN: u64 = 100;
const CONNECTIONS_MAX: u64 = 32;

fn prepare(client: &mut Client) -> Result<()> {
    client.run(DB, &doc! { "drop": "accounts" })?;
    let documents: Vec<Bson> =
        (0..OWN * CONNECTIONS_MAX).map(|id| doc! { "_id": id as i32, "n": 0i64 }.into()).collect();
    client.must(DB, &doc! { "insert": "accounts", "documents": documents })?;
    Ok(())
}

struct Transfers {
    first: Template,
    second: Template,
    commit: Template,
    random: Random,
    /// The connection's first document.
    from: u64,
    number: i64,
    step: u8,
}

fn requests(stream: Stream) -> Result<Box<dyn Requests>> {
    let session = Session::of(&stream, 0);
    let inc = doc! { "q": { "_id": INT32_MARK }, "u": { "$inc": { "n": 1i64 } } };
    let update = doc! { "update": "accounts", "updates": [inc] };
    let commit = doc! { "commitTransaction": 1, "writeConcern": { "w": 1, "j": false } };
    Ok(Box::new(Transfers {
        first: Template::new(&session.sign(update.clone(), true))?.expecting(1, 1, 0)?,
        second: Template::new(&session.sign(update, false))?.expecting(1, 1, 0)?,
        commit: Template::on("admin", &session.sign(commit, false))?.expecting(0, 1, 0)?,
        random: stream.random,
        from: (stream.connection % CONNECTIONS_MAX) * OWN,
        number: 0,
        step: 0,
    }))
}

impl Requests for Transfers {
    fn next(&mut self) -> &[u8] {
        let document = (self.from + self.random.below(OWN)) as i32;
        self.step = self.step % 3 + 1;
        let template = match self.step {
            1 => {
                self.number += 1;
                &mut self.first
            }
            2 => &mut self.second,
            _ => &mut self.commit,
        };
        template.set_int64(0, self.number);
        if self.step < 3 {
            template.set_int32(0, document);
        }
        template.bytes()
    }

    fn operations(&self) -> u64 {
        u64::from(self.step == 3)
    }
}
