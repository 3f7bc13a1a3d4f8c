//! A client of a few lines: what a driver would send, and the bytes of the answer counted.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use espalier_value::{DocBuf, RawDoc, ValueRef};
use espalier_wire::{MAX_MESSAGE_BYTES, OpMsg, begin_op_msg, read_message};

use super::Result;

/// An answer that takes longer will not come.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

pub struct Client {
    stream: TcpStream,
    next: i32,
    out: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, next: 1, out: Vec::new() })
    }

    /// The answer to a command that must succeed.
    pub fn run(&mut self, db: &str, command: &DocBuf) -> Result<DocBuf> {
        let mut body = command.clone();
        body.append("$db", db);
        self.out.clear();
        let mut message = begin_op_msg(&mut self.out, self.next, 0, 0);
        message.bytes().extend_from_slice(body.as_bytes());
        message.finish(MAX_MESSAGE_BYTES).map_err(|error| error.to_string())?;
        self.next += 1;
        self.stream.write_all(&self.out)?;
        let mut bytes = Vec::new();
        let header =
            read_message(&mut self.stream, &mut bytes, MAX_MESSAGE_BYTES).map_err(|error| error.to_string())?;
        let header = header.ok_or("the server has hung up")?;
        let answer = OpMsg::parse(&header, &bytes).map_err(|error| error.to_string())?;
        let answer = DocBuf::from_bytes(answer.body.to_vec()).ok_or("the server's answer is no document")?;
        let raw = answer.as_raw();
        if number(raw, &["ok"]) != 1.0 || raw.get("writeErrors").is_some() {
            let name = command.as_raw().first().map_or("", |elem| elem.name());
            return Err(format!("{name} failed: {raw}").into());
        }
        Ok(answer)
    }
}

/// A number somewhere in a document; 0 if there is none.
pub fn number(doc: RawDoc<'_>, path: &[&str]) -> f64 {
    let Some((last, way)) = path.split_last() else { return 0.0 };
    let inner = way.iter().try_fold(doc, |doc, name| doc.get_doc(name));
    match inner.and_then(|doc| doc.get(last)) {
        Some(ValueRef::Int32(n)) => n.into(),
        Some(ValueRef::Int64(n)) => n as f64,
        Some(ValueRef::Double(n)) => n,
        _ => 0.0,
    }
}
