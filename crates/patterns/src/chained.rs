//! Streams that are read one after the other.

use std::collections::VecDeque;

use espalier_query::Stream;
use espalier_value::{RawDoc, Result};

pub struct Chained {
    streams: VecDeque<Box<dyn Stream>>,
}

impl Chained {
    pub fn new(streams: Vec<Box<dyn Stream>>) -> Chained {
        Chained { streams: streams.into() }
    }
}

impl Stream for Chained {
    fn advance(&mut self) -> Result<bool> {
        while let Some(first) = self.streams.front_mut() {
            if first.advance()? {
                return Ok(true);
            }
            self.streams.pop_front();
        }
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.streams.front().map_or(RawDoc::EMPTY, |first| first.doc())
    }
}
