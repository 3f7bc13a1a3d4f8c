//! The engine's feed: records of the log, turned into events one commit at a time.

use std::collections::VecDeque;
use std::time::Instant;

use espalier_kv::{History, Kv};
use espalier_query::Interrupt;
use espalier_store::{Event, Feed, Watch};
use espalier_value::{Error, Result};

use super::decode::decode;
use crate::error::kv;

/// Commits after which a feed looks whether it should go on.
const LOOK_UP_EVERY: u32 = 256;

pub(crate) struct EngineFeed {
    history: History,
    watch: Watch,
    /// Events of the last record that have not been told.
    waiting: VecDeque<Event>,
}

impl EngineFeed {
    pub fn open(store: &Kv, watch: Watch) -> Result<EngineFeed> {
        let history = store.history(watch.after).map_err(kv)?;
        Ok(EngineFeed { history, watch, waiting: VecDeque::new() })
    }
}

impl Feed for EngineFeed {
    fn next_event(&mut self, interrupt: &Interrupt, until: Option<Instant>) -> Result<Option<Event>> {
        let mut looked_at = 0u32;
        while self.waiting.is_empty() {
            // A commit takes little time; many of other collections may lie between.
            looked_at += 1;
            if looked_at.is_multiple_of(LOOK_UP_EVERY) {
                interrupt.check()?;
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Ok(None);
                }
            }
            let Some(record) = self.history.read().map_err(kv)? else { return Ok(None) };
            let stamp = record.stamp;
            decode(&record, &self.watch, &mut self.waiting).ok_or_else(|| {
                Error::internal(format!("the history of the commit at {stamp} does not say what it wrote"))
            })?;
        }
        Ok(self.waiting.pop_front())
    }

    fn stamp(&self) -> u64 {
        match self.waiting.front() {
            Some(event) => event.stamp - 1,
            None => self.history.stamp(),
        }
    }
}
