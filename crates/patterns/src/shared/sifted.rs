//! Those of a cursor's documents that a test lets through: what is left to be brought in, or out.

use espalier_query::Stream;
use espalier_store::Cursor;
use espalier_value::{RawDoc, Result};

pub struct Sifted<F> {
    pub docs: Box<dyn Cursor>,
    pub wanted: F,
}

impl<F: FnMut(RawDoc<'_>) -> Result<bool> + Send> Stream for Sifted<F> {
    fn advance(&mut self) -> Result<bool> {
        while self.docs.advance()? {
            if (self.wanted)(self.docs.doc())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.docs.doc()
    }
}

impl<F: FnMut(RawDoc<'_>) -> Result<bool> + Send> Cursor for Sifted<F> {
    fn keys_examined(&self) -> u64 {
        self.docs.keys_examined()
    }

    fn docs_examined(&self) -> u64 {
        self.docs.docs_examined()
    }

    fn plan_summary(&self) -> String {
        self.docs.plan_summary()
    }
}
