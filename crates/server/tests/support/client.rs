//! A blocking client on raw bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use espalier_value::{DocBuf, RawDoc, ValueRef};
use espalier_wire::{Header, MAX_MESSAGE_BYTES, OpMsg, begin_op_msg, flags, read_message};

pub struct Client {
    pub stream: TcpStream,
    next: i32,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client::on(stream)
    }

    pub fn on(stream: TcpStream) -> Client {
        Client { stream, next: 1 }
    }

    /// As `send`, on a connection that may be gone.
    pub fn try_send(&mut self, body: &DocBuf) -> std::io::Result<()> {
        let mut out = Vec::new();
        let mut message = begin_op_msg(&mut out, self.next, 0, 0);
        message.bytes().extend_from_slice(body.as_bytes());
        message.finish(MAX_MESSAGE_BYTES).unwrap();
        self.next += 1;
        self.stream.write_all(&out)
    }

    pub fn try_receive(&mut self) -> std::io::Result<DocBuf> {
        let mut bytes = Vec::new();
        let lost = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let header = read_message(&mut self.stream, &mut bytes, 1 << 30).map_err(|_| lost())?.ok_or_else(lost)?;
        let message = OpMsg::parse(&header, &bytes).map_err(|_| lost())?;
        DocBuf::from_bytes(message.body.to_vec()).ok_or_else(lost)
    }

    pub fn send(&mut self, body: &DocBuf, flags: u32) -> i32 {
        let mut out = Vec::new();
        let mut message = begin_op_msg(&mut out, self.next, 0, flags);
        message.bytes().extend_from_slice(body.as_bytes());
        message.finish(MAX_MESSAGE_BYTES).unwrap();
        self.stream.write_all(&out).unwrap();
        self.next += 1;
        self.next - 1
    }

    /// The next reply: its header, flags and body.
    pub fn receive(&mut self) -> (Header, u32, DocBuf) {
        let mut bytes = Vec::new();
        let header = read_message(&mut self.stream, &mut bytes, 1 << 30).unwrap().unwrap();
        let message = OpMsg::parse(&header, &bytes).unwrap();
        (header, message.flags, DocBuf::from_bytes(message.body.to_vec()).unwrap())
    }

    /// Runs a command on a database and returns the reply, whatever it says.
    pub fn run_on(&mut self, db: &str, mut command: DocBuf) -> DocBuf {
        command.append("$db", db);
        let id = self.send(&command, 0);
        let (header, _, reply) = self.receive();
        assert_eq!(header.response_to, id);
        reply
    }

    pub fn run(&mut self, command: DocBuf) -> DocBuf {
        self.run_on("test", command)
    }

    /// As `run`, for a command that must succeed.
    pub fn ok(&mut self, command: DocBuf) -> DocBuf {
        let reply = self.run(command.clone());
        assert!(matches!(reply.as_raw().get("ok"), Some(ValueRef::Double(1.0))), "{command:?} -> {reply:?}");
        reply
    }

    /// The code of a command that must fail.
    pub fn code(&mut self, command: DocBuf) -> i32 {
        let reply = self.run(command.clone());
        match reply.as_raw().get("code") {
            Some(ValueRef::Int32(code)) => code,
            _ => panic!("{command:?} -> {reply:?}"),
        }
    }

    /// Whether the server has hung up.
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        !matches!(self.stream.read(&mut byte), Ok(1..))
    }

    pub fn quiet(&mut self, command: &DocBuf) {
        self.send(command, flags::MORE_TO_COME);
    }
}

/// The documents of a reply's first or next batch.
pub fn batch(reply: &DocBuf) -> Vec<RawDoc<'_>> {
    let cursor = reply.as_raw().get_doc("cursor").unwrap();
    let docs = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch")).unwrap().as_array().unwrap();
    docs.iter().map(|doc| doc.as_doc().unwrap()).collect()
}

pub fn cursor_id(reply: &DocBuf) -> i64 {
    match reply.as_raw().get_doc("cursor").unwrap().get("id") {
        Some(ValueRef::Int64(id)) => id,
        other => panic!("{other:?}"),
    }
}

pub fn int(reply: &DocBuf, name: &str) -> i32 {
    match reply.as_raw().get(name) {
        Some(ValueRef::Int32(n)) => n,
        other => panic!("{name}: {other:?} in {reply:?}"),
    }
}
