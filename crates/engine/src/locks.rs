//! Who is writing what: records, keys of unique indexes, names of new collections.
//!
//! Plain writers of one document queue up here instead of conflicting and starting over. A transaction claims what it
//! writes until it ends: another transaction that wants the same is told at once that it conflicts, a plain writer
//! waits. A transaction never waits for a claim, so nobody can wait in a circle. All of it is a courtesy: that no write
//! is lost rests on the conflict check at commit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use espalier_query::Interrupt;
use espalier_value::Result;

/// A tree and what in it: a record id, or the hash of a key.
pub type Place = (u64, u64);

/// Who holds a place: a transaction's number, or this for a plain writer.
const PLAIN: u64 = 0;

const SHARDS: usize = 64;
/// How often someone who waits looks whether to go on waiting.
const PATIENCE: Duration = Duration::from_millis(20);

pub struct Locks {
    shards: Box<[Shard]>,
    /// Places that transactions hold: while there are none, plain inserts look no further.
    claims: AtomicUsize,
}

#[derive(Default)]
struct Shard {
    held: Mutex<HashMap<Place, u64>>,
    released: Condvar,
}

/// A plain writer's lock, held until dropped.
pub struct Lock<'l> {
    shard: &'l Shard,
    place: Place,
}

impl Locks {
    pub fn new() -> Locks {
        Locks { shards: (0..SHARDS).map(|_| Shard::default()).collect(), claims: AtomicUsize::new(0) }
    }

    /// Waits until nobody else holds the place.
    pub fn lock(&self, place: Place, interrupt: &Interrupt) -> Result<Lock<'_>> {
        let shard = self.shard(place);
        let mut held = guard(shard);
        loop {
            match held.entry(place) {
                Entry::Vacant(free) => {
                    free.insert(PLAIN);
                    return Ok(Lock { shard, place });
                }
                Entry::Occupied(_) => held = wait(shard, held, interrupt)?,
            }
        }
    }

    /// Claims a place for a transaction; false if another writer has it.
    pub fn claim(&self, place: Place, owner: u64) -> bool {
        match guard(self.shard(place)).entry(place) {
            Entry::Vacant(free) => {
                free.insert(owner);
                self.claims.fetch_add(1, Ordering::SeqCst);
                true
            }
            Entry::Occupied(holder) => *holder.get() == owner,
        }
    }

    /// Gives a transaction's claim up.
    pub fn release(&self, place: Place) {
        let shard = self.shard(place);
        guard(shard).remove(&place);
        self.claims.fetch_sub(1, Ordering::SeqCst);
        shard.released.notify_all();
    }

    /// Whether any transaction has claimed anything.
    pub fn has_claims(&self) -> bool {
        self.claims.load(Ordering::SeqCst) > 0
    }

    /// Waits while a transaction has claimed the place. Says whether there was anything to wait for.
    pub fn wait_unclaimed(&self, place: Place, interrupt: &Interrupt) -> Result<bool> {
        if !self.has_claims() {
            return Ok(false);
        }
        let shard = self.shard(place);
        let mut held = guard(shard);
        let mut waited = false;
        while held.get(&place).is_some_and(|holder| *holder != PLAIN) {
            held = wait(shard, held, interrupt)?;
            waited = true;
        }
        Ok(waited)
    }

    fn shard(&self, (tree, id): Place) -> &Shard {
        let mixed = (tree ^ id.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.shards[mixed as usize % SHARDS]
    }
}

type Held<'l> = MutexGuard<'l, HashMap<Place, u64>>;

fn wait<'l>(shard: &'l Shard, held: Held<'l>, interrupt: &Interrupt) -> Result<Held<'l>> {
    interrupt.check()?;
    let waited = shard.released.wait_timeout(held, PATIENCE).unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(waited.0)
}

/// A panic while a shard was locked leaves a map that is still whole.
fn guard(shard: &Shard) -> Held<'_> {
    shard.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        guard(self.shard).remove(&self.place);
        self.shard.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use espalier_value::Code;

    #[test]
    fn a_claim_turns_transactions_away_and_lets_plain_writers_wait() {
        let locks = Locks::new();
        let (place, interrupt) = ((7, 1), Interrupt::default());
        assert!(locks.claim(place, 1) && locks.claim(place, 1));
        assert!(!locks.claim(place, 2));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| locks.lock(place, &interrupt).map(drop));
            std::thread::sleep(Duration::from_millis(30));
            assert!(!waits.is_finished());
            locks.release(place);
            waits.join().unwrap().unwrap();
        });
        assert!(locks.claim(place, 2));
        assert!(!locks.wait_unclaimed((7, 2), &interrupt).unwrap());
    }

    #[test]
    fn whoever_waits_can_be_interrupted() {
        let locks = Locks::new();
        assert!(locks.claim((7, 1), 1));
        let interrupt = Interrupt::default();
        interrupt.raise(Code::MaxTimeMSExpired);
        assert_eq!(locks.lock((7, 1), &interrupt).err().unwrap().code(), Code::MaxTimeMSExpired);
        assert_eq!(locks.wait_unclaimed((7, 1), &interrupt).unwrap_err().code(), Code::MaxTimeMSExpired);
    }
}
