//! A request, taken apart without copying.

use crate::{Decompressor, Envelope, Header, OpMsg, OpQuery, WireError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    Msg(OpMsg<'a>),
    Query(OpQuery<'a>),
}

impl<'a> Message<'a> {
    /// Parses a message that may be compressed. A server wants the steps one by one, to know after an error how to
    /// answer: see [`Envelope`].
    pub fn parse(
        header: Header,
        body: &'a [u8],
        decompressor: &'a mut Decompressor,
        max: usize,
    ) -> Result<Self, WireError> {
        Envelope::open(header, body, decompressor, max)?.parse()
    }
}
