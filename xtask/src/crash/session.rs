//! A writer's connection: every answer is either as expected, or missing because the server is going down, or wrong.

use bson::{Bson, Document};

use crate::client::{Client, is_ok};
use crate::error::Result;

/// Why a step did not succeed.
#[derive(Debug)]
pub enum Stop {
    /// No reply came, or one that says the server is going down: the write may have happened or not.
    Broken(String),
    /// A reply came that should not.
    Wrong(String),
}

/// What a step gives.
pub type Step<T = ()> = std::result::Result<T, Stop>;

/// Shutdown in progress, interrupted at shutdown; and from the reference, which steps down first: primary stepped down,
/// not writable primary, interrupted due to a change of state.
const GOING_DOWN: [i32; 5] = [91, 11600, 189, 10107, 11602];

/// One connection of a writer.
pub struct Session {
    client: Client,
}

impl Session {
    pub fn new(client: Client) -> Session {
        Session { client }
    }

    /// Runs a command and returns its reply, whatever it says.
    pub fn run(&mut self, db: &str, command: &Document) -> Step<Document> {
        let reply = self.client.run(db, command).map_err(|error| Stop::Broken(error.0))?;
        match code(&reply) {
            Some(code) if GOING_DOWN.contains(&code) => Err(Stop::Broken(reply.to_string())),
            _ => Ok(reply),
        }
    }

    /// As `run`, for a command that must succeed.
    pub fn must(&mut self, db: &str, command: &Document) -> Step<Document> {
        let reply = self.run(db, command)?;
        if is_ok(&reply) && !reply.contains_key("writeErrors") && !reply.contains_key("writeConcernError") {
            return Ok(reply);
        }
        Err(wrong(command, &reply))
    }

    /// Runs a command that must succeed and say this number in this field.
    pub fn expect(&mut self, db: &str, command: &Document, field: &str, count: u64) -> Step<Document> {
        let reply = self.must(db, command)?;
        if number(&reply, field) == Some(count as i64) {
            return Ok(reply);
        }
        Err(Stop::Wrong(format!("expected {field}: {count} for {}", short(command, &reply))))
    }
}

/// An answer that should not be.
pub fn wrong(command: &Document, reply: &Document) -> Stop {
    Stop::Wrong(format!("unexpected answer to {}", short(command, reply)))
}

fn short(command: &Document, reply: &Document) -> String {
    let command: String = command.to_string().chars().take(300).collect();
    format!("{command}: {reply}")
}

/// The code of an error: of the command, of its first write, or of the waiting for its safety.
pub fn code(reply: &Document) -> Option<i32> {
    let of_write = || reply.get_array("writeErrors").ok()?.first()?.as_document()?.get_i32("code").ok();
    let of_concern = || reply.get_document("writeConcernError").ok()?.get_i32("code").ok();
    reply.get_i32("code").ok().or_else(of_write).or_else(of_concern)
}

/// A number of any type.
pub fn number(doc: &Document, field: &str) -> Option<i64> {
    match doc.get(field)? {
        Bson::Int32(n) => Some(i64::from(*n)),
        Bson::Int64(n) => Some(*n),
        Bson::Double(n) if n.fract() == 0.0 => Some(*n as i64),
        _ => None,
    }
}

/// All that a `find` or `aggregate` gives, batch by batch.
pub fn read_all(client: &mut Client, db: &str, command: &Document) -> Result<Vec<Document>> {
    let collection = command.values().next().and_then(Bson::as_str).unwrap_or_default().to_owned();
    let mut reply = client.must(db, command)?;
    let mut documents = Vec::new();
    let mut batch = "firstBatch";
    loop {
        let cursor = reply.get_document_mut("cursor")?;
        let id = cursor.get_i64("id")?;
        let found = std::mem::take(cursor.get_array_mut(batch)?);
        documents.extend(found.into_iter().filter_map(|document| match document {
            Bson::Document(document) => Some(document),
            _ => None,
        }));
        if id == 0 {
            return Ok(documents);
        }
        reply = client.must(db, &bson::doc! { "getMore": id, "collection": &collection })?;
        batch = "nextBatch";
    }
}
