//! A blocking MongoDB client of a few lines: OP_MSG over TCP, raw bytes in and out.
//!
//! Deliberately not a driver: what the tests and benchmarks send is exactly what they say, without retries,
//! sessions or pools in between, and a request prepared once can be sent again and again.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bson::raw::RawDocument;
use bson::{Document, Utf8Lossy};

use crate::error::{Result, err};

const OP_MSG: i32 = 2013;
const HEADER_BYTES: usize = 16;
/// The largest reply taken: MongoDB's own message limit.
const MESSAGE_BYTES_MAX: usize = 48_000_000;
/// A reply to an ordinary command that takes longer than this is a hang.
const REPLY_TIMEOUT: Duration = Duration::from_secs(120);

/// Read at once; a longer reply takes more than one read.
const REPLY_BYTES: usize = 4096;

/// One connection to a server.
pub struct Client {
    stream: TcpStream,
    reply: Vec<u8>,
}

impl Client {
    /// Connects to a server on this machine.
    pub fn connect(port: u16) -> Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Client { stream, reply: Vec::new() })
    }

    /// Changes how long a reply may take.
    pub fn set_timeout(&self, timeout: Duration) -> Result<()> {
        self.stream.set_read_timeout(Some(timeout))?;
        self.stream.set_write_timeout(Some(timeout))?;
        Ok(())
    }

    /// Runs a command on a database and returns the whole reply, whether it says ok or not.
    pub fn run(&mut self, db: &str, command: &Document) -> Result<Document> {
        let mut body = command.clone();
        body.insert("$db", db);
        let message = message(&body.to_vec()?);
        let reply = self.send(&message)?;
        // MongoDB cuts long values in error messages, also inside a character.
        let reply = RawDocument::from_bytes(&reply)?;
        Ok(Utf8Lossy::<Document>::try_from(reply)?.0)
    }

    /// Runs a command that must succeed: a reply that is not ok or carries write errors is an error.
    pub fn must(&mut self, db: &str, command: &Document) -> Result<Document> {
        let reply = self.run(db, command)?;
        if is_ok(&reply) && !reply.contains_key("writeErrors") {
            return Ok(reply);
        }
        let name = command.keys().next().map_or("", String::as_str);
        Err(err!("{name} failed: {reply}"))
    }

    /// Sends a complete prepared message and returns the body of the reply as raw BSON.
    pub fn send(&mut self, message: &[u8]) -> Result<&[u8]> {
        self.begin(message)?;
        self.receive()
    }

    /// Sends a complete prepared message; the reply is to be received.
    pub fn begin(&mut self, message: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(message)?)
    }

    /// Waits for the reply to the one message that was sent.
    pub fn receive(&mut self) -> Result<&[u8]> {
        // It never shrinks: room for a long reply is made once.
        self.reply.resize(self.reply.len().max(REPLY_BYTES), 0);
        let mut filled = 0;
        // A short reply comes with one read.
        while filled < HEADER_BYTES {
            match self.stream.read(&mut self.reply[filled..])? {
                0 => return Err(err!("the server closed the connection")),
                count => filled += count,
            }
        }
        let length = usize::try_from(read_i32(&self.reply, 0)).unwrap_or(0);
        if !(HEADER_BYTES + 5..=MESSAGE_BYTES_MAX).contains(&length) || filled > length {
            return Err(err!("the server sent a message of {length} bytes, and {filled} together"));
        }
        if read_i32(&self.reply, 12) != OP_MSG {
            return Err(err!("the server answered with opcode {}", read_i32(&self.reply, 12)));
        }
        self.reply.resize(self.reply.len().max(length), 0);
        self.stream.read_exact(&mut self.reply[filled..length])?;
        // Four bytes of flags, one of section kind; a server replies with the body section first and alone.
        let body = HEADER_BYTES + 5;
        if self.reply[body - 1] != 0 {
            return Err(err!("the reply starts with a section of kind {}", self.reply[body - 1]));
        }
        Ok(&self.reply[body..length])
    }

    /// For waiting until a reply has come.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

/// A complete OP_MSG message around one raw BSON document that already names its `$db`.
pub fn message(body: &[u8]) -> Vec<u8> {
    let length = HEADER_BYTES + 5 + body.len();
    let mut message = Vec::with_capacity(length);
    message.extend_from_slice(&(length as i32).to_le_bytes());
    message.extend_from_slice(&1i32.to_le_bytes());
    message.extend_from_slice(&0i32.to_le_bytes());
    message.extend_from_slice(&OP_MSG.to_le_bytes());
    message.extend_from_slice(&0u32.to_le_bytes());
    message.push(0);
    message.extend_from_slice(body);
    message
}

/// Whether a reply says `ok: 1`, in any numeric type.
pub fn is_ok(reply: &Document) -> bool {
    match reply.get("ok") {
        Some(bson::Bson::Double(ok)) => *ok == 1.0,
        Some(bson::Bson::Int32(ok)) => *ok == 1,
        Some(bson::Bson::Int64(ok)) => *ok == 1,
        Some(bson::Bson::Boolean(ok)) => *ok,
        _ => false,
    }
}

fn read_i32(bytes: &[u8], at: usize) -> i32 {
    i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
