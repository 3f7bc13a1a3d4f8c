//! Collecting bytes into whole frames, in one reused buffer.
//!
//! The buffer grows with what was received and never with what was announced: a client that announces 48 MB and sends
//! nothing costs nothing.

use std::io::{self, Read};

use crate::recycle::trim;
use crate::{HEADER_BYTES, Header, WireError};

/// Room for the usual command; also the most that a read takes beyond the frame it is for.
const ROOM_BYTES_MIN: usize = 4096;

/// A header and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub header: Header,
    pub body: &'a [u8],
}

#[derive(Debug)]
pub enum ReadError {
    Io(io::Error),
    Wire(WireError),
}

/// Takes bytes in any portions and gives whole frames, for any network model:
///
/// - blocking: [`read_frame`](Self::read_frame) in a loop;
/// - otherwise: read into [`unfilled`](Self::unfilled), say how much with [`filled`](Self::filled), then take frames
///   with [`next_frame`](Self::next_frame) until there is none.
///
/// A frame borrows the reader, so that nothing is read while a request is being looked at.
#[derive(Debug)]
pub struct FrameReader {
    /// Its length is the room it has: only growth is paid for with zeroing.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    last_frame_bytes: usize,
    message_bytes_max: usize,
}

impl FrameReader {
    pub fn new(message_bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, end: 0, last_frame_bytes: 0, message_bytes_max }
    }

    /// Changes the limit for the frames to come: a server may trust an authenticated client with more.
    pub fn set_message_bytes_max(&mut self, message_bytes_max: usize) {
        self.message_bytes_max = message_bytes_max;
    }

    /// Whether no received byte waits to be taken.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Gives back the buffer if no received byte is in it, for a connection that falls idle.
    pub fn release(&mut self) {
        if self.is_empty() {
            *self = Self::new(self.message_bytes_max);
        }
    }

    /// The length of the frame that begins the buffer, once its header is there.
    pub fn frame_length(&self) -> Result<Option<usize>, WireError> {
        match self.buffer[self.start..self.end].first_chunk() {
            Some(header) => Header::from_bytes(header).checked_length(self.message_bytes_max).map(Some),
            None => Ok(None),
        }
    }

    /// Whether a whole frame waits to be taken.
    pub fn has_frame(&self) -> Result<bool, WireError> {
        Ok(self.frame_length()?.is_some_and(|length| length <= self.end - self.start))
    }

    /// Room for the bytes to be received next. Empty only while a whole frame, or an error, waits to be taken by
    /// [`next_frame`](Self::next_frame).
    pub fn unfilled(&mut self) -> &mut [u8] {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
            trim(&mut self.buffer, self.last_frame_bytes);
        } else if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let needed = match self.frame_length() {
            Ok(length) => length.unwrap_or(HEADER_BYTES),
            Err(_) => 0,
        };
        grow(&mut self.buffer, self.end, needed);
        &mut self.buffer[self.end..]
    }

    /// Says that the first `count` bytes of [`unfilled`](Self::unfilled) now hold received bytes.
    pub fn filled(&mut self, count: usize) {
        debug_assert!(count <= self.buffer.len() - self.end, "more bytes filled than there was room for");
        self.end = self.end.saturating_add(count).min(self.buffer.len());
    }

    /// Takes the next frame, if all of it is there. After an error the connection is of no more use.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, WireError> {
        let received = &self.buffer[self.start..self.end];
        let Some(length) = self.frame_length()? else { return Ok(None) };
        let Some((header, body)) = received.get(..length).and_then(|frame| frame.split_first_chunk()) else {
            return Ok(None);
        };
        self.start += length;
        self.last_frame_bytes = length;
        Ok(Some(Frame { header: Header::from_bytes(header), body }))
    }

    /// Reads until a whole frame is there and takes it. `None` means that the connection ended between frames.
    ///
    /// What was received is kept when reading fails, so that after a timeout the call can be repeated.
    pub fn read_frame(&mut self, source: &mut impl Read) -> Result<Option<Frame<'_>>, ReadError> {
        while !self.has_frame()? {
            let count = read_some(source, self.unfilled())?;
            self.filled(count);
            if count == 0 {
                if self.is_empty() {
                    return Ok(None);
                }
                let needed = self.frame_length()?.unwrap_or(HEADER_BYTES);
                return Err(WireError::UnexpectedEnd { needed, received: self.end - self.start }.into());
            }
        }
        Ok(self.next_frame()?)
    }
}

/// Reads one message and not a byte more, leaving what follows the header in `body`. For clients and tools; a server
/// gets by with fewer system calls through [`FrameReader`].
pub fn read_message(source: &mut impl Read, body: &mut Vec<u8>, max: usize) -> Result<Option<Header>, ReadError> {
    let mut header = [0; HEADER_BYTES];
    let mut received = 0;
    while received < HEADER_BYTES {
        match read_some(source, &mut header[received..])? {
            0 if received == 0 => return Ok(None),
            0 => return Err(WireError::UnexpectedEnd { needed: HEADER_BYTES, received }.into()),
            count => received += count,
        }
    }
    let header = Header::from_bytes(&header);
    let length = header.checked_length(max)?;
    let needed = length - HEADER_BYTES;
    let mut received = 0;
    while received < needed {
        grow(body, received, needed);
        let room = body.len().min(needed);
        match read_some(source, &mut body[received..room])? {
            0 => {
                let received = received + HEADER_BYTES;
                return Err(WireError::UnexpectedEnd { needed: length, received }.into());
            }
            count => received += count,
        }
    }
    body.truncate(needed);
    Ok(Some(header))
}

/// Makes sure that a buffer with `received` bytes in it, which needs to hold `needed`, has room for more: at most as much
/// again as was received, and no more than needed or the minimum.
fn grow(buffer: &mut Vec<u8>, received: usize, needed: usize) {
    if received < buffer.len() || needed <= received {
        return;
    }
    let room = received.saturating_mul(2).min(needed).max(ROOM_BYTES_MIN);
    buffer.reserve_exact(room - buffer.len());
    buffer.resize(room, 0);
}

fn read_some(source: &mut impl Read, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match source.read(room) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<WireError> for ReadError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Wire(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}
