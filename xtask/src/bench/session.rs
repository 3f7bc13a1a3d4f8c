//! The session that a connection's transactions belong to.

use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};

use super::Stream;
use super::template::INT64_MARK;

pub struct Session([u8; 16]);

impl Session {
    /// Another one for each program, run and connection, and for each `kind` of requests.
    pub fn of(stream: &Stream, kind: u16) -> Session {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&stream.run.to_be_bytes());
        id[8..].copy_from_slice(&stream.connection.to_be_bytes());
        id[..4].copy_from_slice(&std::process::id().to_be_bytes());
        id[4..6].copy_from_slice(&kind.to_be_bytes());
        Session(id)
    }

    /// The command as a statement of a transaction, or its first; the transaction's number is left open.
    pub fn sign(&self, mut command: Document, start: bool) -> Document {
        let id = Binary { subtype: BinarySubtype::Uuid, bytes: self.0.to_vec() };
        command.insert("lsid", doc! { "id": id });
        command.insert("txnNumber", INT64_MARK);
        if start {
            command.insert("startTransaction", true);
        }
        command.insert("autocommit", false);
        command
    }
}
