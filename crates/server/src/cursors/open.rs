//! One open cursor: where its documents come from, and how a batch of them is written into a reply.

use std::sync::Arc;
use std::time::Instant;

use espalier_query::{Context, Stream};
use espalier_store::{Cursor, Namespace, Tailable};
use espalier_value::{Code, DocBuf, Error, RawDoc, Result};

use super::BATCH_BYTES_MAX;
use crate::auth::names::UserName;
use crate::change_streams::{ChangeStream, Token};
use crate::net::Room;
use crate::reply::ArrayWriter;
use crate::sessions::Lsid;

/// Stages may make larger documents than can be stored, but none such is sent to a client: MongoDB's limit for what a
/// document and what the server adds to it measure.
const RESULT_BYTES_MAX: usize = (16 << 20) + (16 << 10);

pub struct OpenCursor {
    pub ns: Namespace,
    pub session: Option<Lsid>,
    /// The number of the transaction it was opened in.
    pub transaction: Option<i64>,
    /// Who opened it.
    pub owners: Vec<UserName>,
    pub context: Arc<Context>,
    pub source: Source,
    pub tailable: Option<Tailable>,
    pub no_timeout: bool,
    /// Documents that may still be returned, if the client set a limit.
    pub left: Option<u64>,
    /// Where a change stream goes on after what was returned.
    pub resume: Option<Token>,
    /// The source stands on a document that did not fit into the last batch.
    held: bool,
    pub created_ms: i64,
    /// Documents and batches that the client has got.
    pub docs_returned: u64,
    pub batches_returned: u64,
    /// The command that opened it, if it is short.
    pub origin: Option<DocBuf>,
}

pub enum Source {
    Find(Box<dyn Cursor>),
    Pipeline(Box<dyn Stream>),
    Changes(Box<ChangeStream>),
}

impl Stream for Source {
    fn advance(&mut self) -> Result<bool> {
        match self {
            Source::Find(cursor) => cursor.advance(),
            Source::Pipeline(stream) => stream.advance(),
            Source::Changes(stream) => stream.advance(),
        }
    }

    fn doc(&self) -> RawDoc<'_> {
        match self {
            Source::Find(cursor) => cursor.doc(),
            Source::Pipeline(stream) => stream.doc(),
            Source::Changes(stream) => stream.doc(),
        }
    }
}

impl OpenCursor {
    pub fn new(ns: Namespace, context: Arc<Context>, source: Source) -> OpenCursor {
        OpenCursor {
            ns,
            session: None,
            transaction: None,
            owners: Vec::new(),
            context,
            source,
            tailable: None,
            no_timeout: false,
            left: None,
            resume: None,
            held: false,
            created_ms: crate::clock::now_ms(),
            docs_returned: 0,
            batches_returned: 0,
            origin: None,
        }
    }

    /// Writes up to `docs_max` documents, as many as fit a reply. False if there are no more, now or ever.
    pub fn fill(&mut self, batch: &mut ArrayWriter<'_>, docs_max: u64, room: &mut Room<'_>) -> Result<bool> {
        loop {
            if self.left == Some(0) {
                return Ok(false);
            }
            if batch.len() as u64 >= docs_max {
                return Ok(true);
            }
            self.context.interrupt.check()?;
            if !self.held && !self.source.advance()? {
                if let Source::Changes(stream) = &self.source {
                    self.resume = Some(stream.mark());
                    return Ok(!stream.is_ended());
                }
                return Ok(self.tailable.is_some());
            }
            let doc = self.source.doc();
            if !batch.is_empty() && batch.len_bytes() + doc.as_bytes().len() > BATCH_BYTES_MAX {
                self.held = true;
                return Ok(true);
            }
            if doc.as_bytes().len() > RESULT_BYTES_MAX {
                let message = format!("BSONObj size: {} is invalid: a result may not be larger", doc.as_bytes().len());
                return Err(Error::new(Code::BSONObjectTooLarge, message));
            }
            room.need(batch.len_bytes() + doc.as_bytes().len())?;
            batch.push(doc);
            self.docs_returned += 1;
            self.held = false;
            if let Source::Changes(stream) = &self.source {
                self.resume = Some(stream.token());
            }
            if let Some(left) = &mut self.left {
                *left -= 1;
            }
        }
    }

    pub fn is_change_stream(&self) -> bool {
        matches!(self.source, Source::Changes(_))
    }

    /// Whether a change stream has come to its end.
    pub fn is_invalidated(&self) -> bool {
        matches!(&self.source, Source::Changes(stream) if stream.is_ended())
    }

    /// Lets a change stream look for events until then.
    pub fn look_until(&mut self, until: Instant) {
        if let Source::Changes(stream) = &mut self.source {
            stream.look_until(until);
        }
    }
}
