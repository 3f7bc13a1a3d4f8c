//! Reading requests from a connection's socket.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::net::RecvFlags;

use super::budget::Share;
use super::connection::{Connection, SMALL_BYTES, invalid};
use crate::server::Server;

/// A client that neither sends the rest of a large request nor takes its reply for this long is cut off.
const STALL_MAX: Duration = Duration::from_secs(30);
/// A large request comes at least this fast on the whole, or its share of the budget is for others to have: somebody who
/// sends a byte now and then must not keep it.
const BYTES_PER_SECOND_MIN: u64 = 64 * 1024;

pub(super) enum Received {
    Request,
    Nothing,
    /// A part of one that needs a share of the budget.
    Large,
    End,
}

impl Connection {
    /// Reads until a whole request is there, or nothing comes.
    pub(super) fn receive(&mut self, server: &Server, share: &mut Option<Share>) -> io::Result<Received> {
        let mut last_progress = Instant::now();
        // Since there is a share: when that was, and what has come.
        let (mut begun, mut received) = (last_progress, 0);
        loop {
            if self.reader.has_frame().map_err(invalid)? {
                return Ok(Received::Request);
            }
            if share.is_none()
                && let Some(length) = self.reader.frame_length().map_err(invalid)?
                && length > SMALL_BYTES
            {
                *share = Some(acquire(server, length)?);
                last_progress = Instant::now();
                begun = last_progress;
            }
            if share.is_some() && is_too_slow(received, begun.elapsed()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match self.read_some(server, true)? {
                Bytes::Some(count) => {
                    received += count as u64;
                    last_progress = Instant::now();
                }
                Bytes::End => return Ok(Received::End),
                // Without a share there is little to lose by waiting in epoll, even within a request.
                Bytes::None if share.is_none() => return Ok(Received::Nothing),
                Bytes::None if server.is_stopping() || last_progress.elapsed() > STALL_MAX => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Bytes::None => {}
            }
        }
    }

    /// Reads what is there. Nothing if that is not a whole request.
    pub(super) fn receive_now(&mut self, server: &Server) -> io::Result<Received> {
        loop {
            if self.reader.has_frame().map_err(invalid)? {
                return Ok(Received::Request);
            }
            if self.reader.frame_length().map_err(invalid)?.is_some_and(|length| length > SMALL_BYTES) {
                return Ok(Received::Large);
            }
            match self.read_some(server, false)? {
                Bytes::Some(_) => {}
                Bytes::None => return Ok(Received::Nothing),
                Bytes::End => return Ok(Received::End),
            }
        }
    }

    /// Reads what fits into the buffer; if nothing is there, after waiting for a while, or at once.
    fn read_some(&mut self, server: &Server, waits: bool) -> io::Result<Bytes> {
        let (mut waiting, mut now) = (&self.client.stream, Now(&self.client.stream));
        let incoming: &mut dyn Read = if waits { &mut waiting } else { &mut now };
        let read = match &mut self.tls {
            Some(tls) => tls.read(&self.client.stream, incoming, self.reader.unfilled()),
            None => incoming.read(self.reader.unfilled()),
        };
        match read {
            Ok(0) if self.reader.is_empty() => Ok(Bytes::End),
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.reader.filled(count);
                server.metrics.bytes_in(count);
                Ok(Bytes::Some(count))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Bytes::Some(0)),
            Err(error) if is_timeout(&error) => Ok(Bytes::None),
            Err(error) => Err(error),
        }
    }
}

enum Bytes {
    Some(usize),
    None,
    End,
}

/// Reads what is there and does not wait for more.
struct Now<'s>(&'s TcpStream);

impl Read for Now<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self.0, buffer, RecvFlags::DONTWAIT)?.1)
    }
}

pub(super) fn acquire(server: &Server, bytes: usize) -> io::Result<Share> {
    server.budget.acquire(bytes as u64, STALL_MAX).ok_or_else(|| {
        server.log.warn("network", "too many large requests at once: a connection is closed", &[("bytes", &bytes)]);
        io::ErrorKind::OutOfMemory.into()
    })
}

/// Whether a large request has come too slowly; everybody has the time of a stall to begin with.
fn is_too_slow(received: u64, elapsed: Duration) -> bool {
    elapsed > STALL_MAX && received < elapsed.as_secs() * BYTES_PER_SECOND_MIN
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_request_may_be_slow_but_not_for_ever() {
        let seconds = Duration::from_secs;
        assert!(!is_too_slow(0, seconds(30)));
        assert!(is_too_slow(40, seconds(31)));
        assert!(!is_too_slow(40_000_000, seconds(300)));
        assert!(is_too_slow(10_000_000, seconds(300)));
    }
}
