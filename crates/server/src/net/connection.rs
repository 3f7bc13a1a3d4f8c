//! One connection: requests in, replies out, on whichever thread has it at the moment.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use espalier_wire::{
    Compression, Compressor, Decompressor, Envelope, FrameReader, MAX_MESSAGE_BYTES, Message, begin_op_msg,
    begin_op_reply, flags, op_code, recycle, response_flags,
};

use super::budget::Share;
use super::receive::{Received, acquire};
use super::tls::Tls;
use crate::call::Wait;
use crate::client::Client;
use crate::dispatch::{self, Incoming, Outcome};
use crate::server::Server;

/// A thread waits this long for the next request before it lets go of the connection.
pub(crate) const LINGER: Duration = Duration::from_millis(100);
/// A smaller request needs no share of the budget.
pub(super) const SMALL_BYTES: usize = 64 * 1024;
/// A reply may hold one document of the largest size, a batch, and the fields around them.
const REPLY_BYTES_MAX: usize = MAX_MESSAGE_BYTES + 16 * 1024 * 1024;

/// So many requests are answered on a connection's own thread before it joins a group: short ones come in numbers.
const CALM: u32 = 32;
const CALM_MAX: u32 = 512;
/// A request that takes longer is not a short one.
const CALM_TIME: Duration = Duration::from_millis(5);

pub(crate) struct Connection {
    pub(super) client: Arc<Client>,
    server: Arc<Server>,
    /// Everything goes through this, if the server has certificates.
    pub(super) tls: Option<Box<Tls>>,
    pub(super) reader: FrameReader,
    decompressor: Decompressor,
    compressor: Compressor,
    out: Vec<u8>,
    compressed: Vec<u8>,
    waiting: Option<Box<Waiting>>,
    /// Short requests answered since one was long or held up a group, and how many there are to be before it joins one.
    calm: u32,
    calm_min: u32,
}

/// Why a connection has a thread again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wake {
    Readable,
    Timer,
    /// Feeds may have more to tell.
    Changed,
}

/// What becomes of a connection when its thread is done with it.
pub(crate) enum After {
    /// Until then, or until there are changes after what was seen.
    Park(Option<Instant>, Option<u64>),
    /// It goes on in a group.
    Join,
    /// It stays in its group.
    Stay,
    /// It needs a thread of its own.
    Own,
    Close,
}

/// A request that is to be answered later.
struct Waiting {
    body: Vec<u8>,
    how: ReplyTo,
    until: Instant,
    what: Awaited,
}

#[derive(Clone, Copy)]
enum Awaited {
    /// A `hello`: after this long, and if the client allows it again and again.
    Time(Duration),
    /// A change stream: when feeds may have more to tell than was seen.
    Changes(u64),
}

impl Waiting {
    fn after(&self) -> After {
        let seen = if let Awaited::Changes(seen) = self.what { Some(seen) } else { None };
        After::Park(Some(self.until), seen)
    }
}

/// How to answer a request.
#[derive(Clone, Copy)]
struct ReplyTo {
    response_to: i32,
    compression: Option<Compression>,
    checksum: bool,
    exhaust: bool,
    /// OP_REPLY, for OP_QUERY.
    legacy: bool,
}

impl Connection {
    pub fn new(client: Arc<Client>, server: Arc<Server>, tls: Option<Box<Tls>>) -> Connection {
        Connection {
            client,
            server,
            tls,
            reader: FrameReader::new(MAX_MESSAGE_BYTES),
            decompressor: Decompressor::new(),
            compressor: Compressor::new(),
            out: Vec::new(),
            compressed: Vec::new(),
            waiting: None,
            calm: 0,
            calm_min: CALM,
        }
    }

    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub fn key(&self) -> usize {
        self.client.id as usize
    }

    pub fn stream(&self) -> &TcpStream {
        &self.client.stream
    }

    /// Answers requests until there are none for a while.
    pub fn serve(&mut self, wake: Wake) -> After {
        match self.serve_until_idle(wake) {
            Ok(after) => after,
            Err(error) => self.ended(&error),
        }
    }

    fn ended(&self, error: &io::Error) -> After {
        let peer = self.client.peer;
        self.server.log.debug("network", "connection ended", &[("peer", &peer), ("error", error)]);
        After::Close
    }

    /// When to look at the connection again although nothing has come: at the end of the time for a handshake.
    pub fn handshake_until(&self) -> Option<Instant> {
        self.tls.as_ref().and_then(|tls| tls.handshake_until())
    }

    fn serve_until_idle(&mut self, wake: Wake) -> io::Result<After> {
        if self.handshake_until().is_some_and(|until| Instant::now() >= until) {
            return Ok(After::Close);
        }
        if let Some(waiting) = self.waiting.take() {
            if wake == Wake::Readable && self.client.is_gone() {
                return Ok(After::Close);
            }
            self.answer_waiting(*waiting, wake)?;
            if let Some(waiting) = &self.waiting {
                return Ok(waiting.after());
            }
        }
        let server = Arc::clone(&self.server);
        loop {
            if server.is_stopping() {
                return Ok(After::Close);
            }
            let mut share = None;
            match self.receive(&server, &mut share)? {
                Received::Request => {}
                Received::Nothing | Received::Large => {
                    self.release();
                    return Ok(After::Park(self.handshake_until(), None));
                }
                Received::End => return Ok(After::Close),
            }
            let begun = Instant::now();
            if !self.answer(&server, &mut share)? {
                return Ok(After::Close);
            }
            if let Some(waiting) = &self.waiting {
                let after = waiting.after();
                self.release();
                return Ok(after);
            }
            self.calm = if begun.elapsed() < CALM_TIME { self.calm.saturating_add(1) } else { 0 };
            if self.fits_a_crowd() && self.holds_nothing() {
                return Ok(After::Join);
            }
            if server.pool.is_starved() && self.holds_nothing() {
                return Ok(After::Park(None, None));
            }
        }
    }

    /// Answers the requests that have come, without waiting for more.
    pub fn serve_ready(&mut self) -> After {
        match self.serve_what_came() {
            Ok(after) => after,
            Err(error) => self.ended(&error),
        }
    }

    fn serve_what_came(&mut self) -> io::Result<After> {
        let server = Arc::clone(&self.server);
        loop {
            match self.receive_now(&server)? {
                Received::Request => {}
                Received::Nothing => return Ok(After::Stay),
                Received::Large => return Ok(After::Own),
                Received::End => return Ok(After::Close),
            }
            if !self.answer(&server, &mut None)? {
                return Ok(After::Close);
            }
            if let Some(waiting) = &self.waiting {
                let after = waiting.after();
                self.release();
                return Ok(after);
            }
            self.calm = self.calm.saturating_add(1);
            if self.calm >= 2 * CALM_MAX {
                // Whatever it was is long ago.
                self.calm_min = CALM;
            }
            if self.holds_nothing() {
                return Ok(After::Stay);
            }
        }
    }

    /// Whether everything that has come has been answered, so that the socket tells of the next request.
    fn holds_nothing(&mut self) -> bool {
        self.reader.is_empty() && !self.tls.as_mut().is_some_and(|tls| tls.has_plaintext())
    }

    /// Whether it may be served in a group with others: it has not held up one lately.
    pub fn fits_a_crowd(&self) -> bool {
        self.calm >= self.calm_min && self.server.crowd.is_crowded()
    }

    /// A request held up a group: it takes longer until the connection joins one again.
    pub fn was_held_up(&mut self) {
        self.calm = 0;
        self.calm_min = (self.calm_min * 2).min(CALM_MAX);
    }

    /// Nothing has come for a while.
    pub fn rest(&mut self) -> After {
        self.release();
        After::Park(None, None)
    }

    /// Gives back all buffers that hold nothing.
    fn release(&mut self) {
        self.reader.release();
        self.decompressor.release();
        self.compressor.release();
        self.out = Vec::new();
        self.compressed = Vec::new();
        self.client.rest();
    }

    /// Answers the request that has been received. False if the connection is to be closed.
    fn answer(&mut self, server: &Arc<Server>, share: &mut Option<Share>) -> io::Result<bool> {
        let Some(frame) = self.reader.next_frame().map_err(invalid)? else { return Ok(false) };
        if let Some(tls) = &self.tls {
            // A request has come through, so the handshake is over.
            self.client.certified(|| tls.subject());
        }
        recycle(&mut self.out);
        // Bytes 4..8 of OP_COMPRESSED say how large the message will be.
        if frame.header.op_code == op_code::OP_COMPRESSED
            && let Some(size) = frame.body.get(4..8).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes)
            && (SMALL_BYTES..=MAX_MESSAGE_BYTES).contains(&(size as usize))
        {
            drop(share.take());
            *share = Some(acquire(server, frame.body.len() + size as usize)?);
        }
        let envelope = Envelope::open(frame.header, frame.body, &mut self.decompressor, MAX_MESSAGE_BYTES);
        let envelope = envelope.map_err(invalid)?;
        if envelope.compression.is_some() {
            server.metrics.saved_in.add(envelope.payload.len().saturating_sub(frame.body.len()) as u64);
        }
        let msg_flags = envelope.op_msg_flags().unwrap_or(0);
        let mut how = ReplyTo {
            response_to: envelope.header.request_id,
            compression: envelope.compression,
            checksum: msg_flags & flags::CHECKSUM_PRESENT != 0,
            exhaust: msg_flags & flags::EXHAUST_ALLOWED != 0,
            legacy: envelope.header.op_code == op_code::OP_QUERY,
        };
        let quiet = msg_flags & flags::MORE_TO_COME != 0;
        let incoming = match envelope.parse() {
            Ok(Message::Msg(message)) => Incoming {
                body: message.body,
                sequences: message.sequences,
                db: None,
                legacy: false,
                waited: false,
                until: None,
            },
            Ok(Message::Query(query)) => Incoming {
                body: query.query,
                sequences: Default::default(),
                db: Some(query.command_database().unwrap_or_default()),
                legacy: true,
                waited: false,
                until: None,
            },
            Err(error) => {
                let Some(code) = error.reply_code() else { return Err(invalid(error)) };
                if !quiet {
                    let request_id = server.next_request_id();
                    write_reply(&mut self.out, request_id, how, 0, |out| {
                        dispatch::write_wire_error(server, code, &error.to_string(), out);
                    })?;
                    self.send(server, how)?;
                }
                return Ok(true);
            }
        };
        let request_id = server.next_request_id();
        let body = incoming.body;
        let mut outcome = Outcome::default();
        let (client, out) = (&self.client, &mut self.out);
        write_reply(out, request_id, how, 0, |out| {
            outcome = dispatch::execute(server, client, incoming, out);
        })?;
        // The reply's share of memory is given back when it is sent.
        let _room = outcome.room.take();
        if let Some(wait) = outcome.wait {
            let (until, what) = match wait {
                Wait::For(every) => (Instant::now() + every, Awaited::Time(every)),
                Wait::Changes { until, seen } => (until, Awaited::Changes(seen)),
            };
            let body = body.to_vec();
            self.waiting = Some(Box::new(Waiting { body, how, until, what }));
            return Ok(true);
        }
        if outcome.plain {
            how.compression = None;
        }
        if !quiet {
            self.send(server, how)?;
        }
        Ok(!outcome.close)
    }

    fn answer_waiting(&mut self, waiting: Waiting, wake: Wake) -> io::Result<()> {
        let server = Arc::clone(&self.server);
        let every = match waiting.what {
            Awaited::Time(every) => Some(every).filter(|_| waiting.how.exhaust && wake == Wake::Timer),
            Awaited::Changes(_) => None,
        };
        // A client that sends something else does not wait any more.
        let until = if wake == Wake::Changed { waiting.until } else { Instant::now() };
        let request_id = server.next_request_id();
        let more = if every.is_some() { flags::MORE_TO_COME } else { 0 };
        recycle(&mut self.out);
        let mut outcome = Outcome::default();
        let (client, out) = (&self.client, &mut self.out);
        write_reply(out, request_id, waiting.how, more, |out| {
            let incoming = Incoming {
                body: &waiting.body,
                sequences: Default::default(),
                db: None,
                legacy: false,
                waited: true,
                until: matches!(waiting.what, Awaited::Changes(_)).then_some(until),
            };
            outcome = dispatch::execute(&server, client, incoming, out);
        })?;
        let _room = outcome.room.take();
        if let Some(Wait::Changes { until, seen }) = outcome.wait {
            // There was nothing for this one.
            self.waiting = Some(Box::new(Waiting { until, what: Awaited::Changes(seen), ..waiting }));
            self.release();
            return Ok(());
        }
        let compression = if outcome.plain { None } else { waiting.how.compression };
        self.send(&server, ReplyTo { compression, ..waiting.how })?;
        if let Some(every) = every {
            // Each reply answers the one before it, as if the client had asked again.
            let how = ReplyTo { response_to: request_id, ..waiting.how };
            let until = Instant::now() + every;
            self.waiting = Some(Box::new(Waiting { how, until, ..waiting }));
            self.release();
        }
        Ok(())
    }

    fn send(&mut self, server: &Server, how: ReplyTo) -> io::Result<()> {
        let mut bytes = &self.out;
        if let Some(compression) = how.compression
            && server.options.compressors.contains(&compression)
        {
            recycle(&mut self.compressed);
            if self.compressor.compress(compression, &self.out, &mut self.compressed) {
                bytes = &self.compressed;
                server.metrics.saved_out.add(self.out.len().saturating_sub(bytes.len()) as u64);
            }
        }
        match &mut self.tls {
            Some(tls) => tls.write_all(&self.client.stream, bytes)?,
            None => (&self.client.stream).write_all(bytes)?,
        }
        server.metrics.bytes_out(bytes.len());
        Ok(())
    }
}

fn write_reply(
    out: &mut Vec<u8>,
    request_id: i32,
    how: ReplyTo,
    more_flags: u32,
    write: impl FnOnce(&mut Vec<u8>),
) -> io::Result<()> {
    let mut message = if how.legacy {
        begin_op_reply(out, request_id, how.response_to, response_flags::AWAIT_CAPABLE, 0, 0, 1)
    } else {
        let checksum = if how.checksum { flags::CHECKSUM_PRESENT } else { 0 };
        begin_op_msg(out, request_id, how.response_to, checksum | more_flags)
    };
    write(message.bytes());
    message.finish(REPLY_BYTES_MAX).map_err(invalid)
}

pub(super) fn invalid(error: espalier_wire::WireError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
