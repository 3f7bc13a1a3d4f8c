//! `--metrics`: a web server that knows one page, the metrics.
//!
//! It reads one short request on a connection, answers, and closes. Whatever a client does, it holds one of a few threads
//! for a few seconds and a few kilobytes.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::prometheus;
use crate::net::Listener;
use crate::server::Server;

/// Connections answered at once; more are closed.
const CONNECTIONS_MAX: usize = 8;
/// A request is this short: a line and a few headers.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// From the first byte to the last one of the answer.
const TIME_MAX: Duration = Duration::from_secs(5);

/// Answers until the listener is stopped.
pub(crate) fn serve(server: &Arc<Server>, listener: &Listener) {
    let active = Arc::new(AtomicUsize::new(0));
    let failed = |error: &io::Error| server.log.warn("network", "metrics: no connection", &[("error", error)]);
    let accepted = |stream: TcpStream, _| {
        if active.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            active.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let (server, count) = (Arc::clone(server), Active(Arc::clone(&active)));
        let answering = thread::Builder::new().name("metrics".into()).stack_size(256 << 10);
        // Without a thread the connection is closed, and the next one may be luckier.
        let _ = answering.spawn(move || {
            let _count = count;
            // Nobody can be told if the other side has gone.
            let _ = answer(&server, &stream);
        });
    };
    listener.run(accepted, failed);
}

/// One connection being answered.
struct Active(Arc<AtomicUsize>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn answer(server: &Server, mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let until = Instant::now() + TIME_MAX;
    stream.set_write_timeout(Some(TIME_MAX))?;
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > REQUEST_BYTES_MAX {
            return write!(stream, "{}", plain("400 Bad Request", "the request is too long or too slow\n", true));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Ok(()),
            count => request.extend_from_slice(&part[..count]),
        }
    }
    stream.write_all(respond(server, &request).as_bytes())
}

fn respond(server: &Server, request: &[u8]) -> String {
    let line = request.split(|byte| *byte == b'\r').next().and_then(|line| std::str::from_utf8(line).ok());
    let mut words = line.unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.0" | "HTTP/1.1")) = (words.next(), words.next(), words.next()) else {
        return plain("400 Bad Request", "this is no HTTP/1.1 request\n", true);
    };
    let with_body = method == "GET";
    if !matches!(method, "GET" | "HEAD") {
        return plain("405 Method Not Allowed", "only GET and HEAD\n", true);
    }
    match target.split('?').next().unwrap_or_default() {
        "/metrics" => response("200 OK", prometheus::CONTENT_TYPE, &prometheus::page(server), with_body),
        "/" => plain("200 OK", "Espalier: the metrics are at /metrics\n", with_body),
        _ => plain("404 Not Found", "there is only /metrics\n", with_body),
    }
}

fn plain(status: &str, body: &str, with_body: bool) -> String {
    response(status, "text/plain; charset=utf-8", body, with_body)
}

fn response(status: &str, content_type: &str, body: &str, with_body: bool) -> String {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if with_body { head + body } else { head }
}
