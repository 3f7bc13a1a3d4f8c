//! What the writers do: one file for each kind of work, one line in `all`.
//!
//! A piece of work has collections, or at least documents, of its own, which nobody else writes; so it knows after each
//! restart exactly what may be there.

mod arrays;
mod batches;
mod capped;
mod catalog;
mod counters;
mod documents;
mod expiring;
mod large;
mod output;
mod patterned;
mod transfer;
mod unjournaled;

#[cfg(test)]
pub use documents::{main_states, unique_states};

use super::problems::Problems;
use super::session::{Session, Step};
use crate::client::Client;
use crate::error::Result;
use crate::process::Against;
use crate::random::Random;

/// One connection's work.
pub trait Work: Send {
    fn name(&self) -> &'static str;
    /// On the empty server.
    fn prepare(&mut self, client: &mut Client) -> Result<()>;
    /// A command or a few, remembered before they are sent.
    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step;
    /// After a restart: compares what is stored with what is remembered; from then on that is what is known.
    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()>;
    /// After a check: waits for what goes on in the background; true if there was something to wait for, and all is to be
    /// checked again.
    fn settle(&mut self, _client: &mut Client, _problems: &mut Problems) -> Result<bool> {
        Ok(false)
    }
    /// How often it found that work in the background went on after a restart.
    fn resumed(&self) -> u64 {
        0
    }
    /// Writes acknowledged so far.
    fn acknowledged(&self) -> u64;
    /// At the end of the run, with the server up and nobody writing.
    fn finish(&mut self, _client: &mut Client, _problems: &mut Problems) -> Result<()> {
        Ok(())
    }
}

/// Every piece of work of a run against this server; the reference has no patterns.
pub fn all(against: Against) -> Vec<Box<dyn Work>> {
    let mut all: Vec<Box<dyn Work>> = vec![
        Box::new(arrays::Arrays::new()),
        Box::new(batches::Batches::new()),
        Box::new(capped::Capped::new()),
        Box::new(catalog::Catalog::new()),
        Box::new(catalog::Disturber::new()),
        Box::new(counters::Counters::new(0)),
        Box::new(counters::Counters::new(1)),
        Box::new(expiring::Expiring::new()),
        Box::new(large::Large::new()),
        Box::new(output::Output::new()),
        Box::new(unjournaled::Unjournaled::new()),
    ];
    all.extend((0..documents::WRITERS).map(|writer| Box::new(documents::Documents::new(writer)) as Box<dyn Work>));
    all.extend((0..transfer::WRITERS).map(|writer| Box::new(transfer::Transfer::new(writer)) as Box<dyn Work>));
    if against == Against::Espalier {
        all.extend(patterned::all());
    }
    all
}
