//! Who is writing what: records, keys of unique indexes, names of new collections.
//!
//! Plain writers of one document queue up here instead of conflicting and starting over. A transaction claims what it
//! writes until it ends: another transaction that wants the same is told at once that it conflicts, a plain writer
//! waits. A transaction never waits for a claim, so nobody can wait in a circle. All of it is a courtesy: that no write
//! is lost rests on the conflict check at commit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
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

/// Who waits for a plain writer looks so often before it sleeps, with pauses of about a microsecond: as long as a write of
/// one document takes. Only the first does: more would take the processor from whoever they wait for.
const LOOKS: u32 = 16;
const BETWEEN_LOOKS: u32 = 30;

pub struct Locks {
    shards: Box<[Shard]>,
    /// Places that transactions hold: while there are none, plain inserts look no further.
    claims: AtomicUsize,
}

#[derive(Default)]
struct Shard {
    held: Mutex<Holders>,
    released: Condvar,
}

#[derive(Default)]
struct Holders {
    places: HashMap<Place, u64, BuildHasherDefault<PlaceHasher>>,
    /// Writers that wait for any of the places; while there are none, nobody need be woken, which is a system call.
    waiting: usize,
}

/// Places are record ids, which we give out ourselves, and hashes: mixing the two is enough.
#[derive(Default)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(26) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// What came of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// It was free.
    Taken,
    /// The transaction has it already.
    Own,
    /// Another writer has it.
    Refused,
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
        let mut looks = 0;
        loop {
            let is_first = held.waiting == 0;
            match held.places.entry(place) {
                Entry::Vacant(free) => {
                    free.insert(PLAIN);
                    return Ok(Lock { shard, place });
                }
                Entry::Occupied(holder) if *holder.get() == PLAIN && is_first && looks < LOOKS => {
                    looks += 1;
                    held = look_again(shard, held);
                }
                Entry::Occupied(_) => held = wait(shard, held, interrupt)?,
            }
        }
    }

    /// Claims a place for a transaction, unless another writer has it.
    pub fn claim(&self, place: Place, owner: u64) -> Claim {
        match guard(self.shard(place)).places.entry(place) {
            Entry::Vacant(free) => {
                free.insert(owner);
                self.claims.fetch_add(1, Ordering::SeqCst);
                Claim::Taken
            }
            Entry::Occupied(holder) if *holder.get() == owner => Claim::Own,
            Entry::Occupied(_) => Claim::Refused,
        }
    }

    /// Gives a transaction's claim up.
    pub fn release(&self, place: Place) {
        free(self.shard(place), place);
        self.claims.fetch_sub(1, Ordering::SeqCst);
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
        while held.places.get(&place).is_some_and(|holder| *holder != PLAIN) {
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

type Held<'l> = MutexGuard<'l, Holders>;

/// A plain writer is done in a moment: looking again costs less than being put to sleep and woken.
fn look_again<'l>(shard: &'l Shard, held: Held<'l>) -> Held<'l> {
    drop(held);
    for _ in 0..BETWEEN_LOOKS {
        std::hint::spin_loop();
    }
    guard(shard)
}

fn wait<'l>(shard: &'l Shard, mut held: Held<'l>, interrupt: &Interrupt) -> Result<Held<'l>> {
    interrupt.check()?;
    held.waiting += 1;
    let waited = shard.released.wait_timeout(held, PATIENCE).unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut held = waited.0;
    held.waiting -= 1;
    Ok(held)
}

fn free(shard: &Shard, place: Place) {
    let mut held = guard(shard);
    held.places.remove(&place);
    let is_awaited = held.waiting > 0;
    drop(held);
    if is_awaited {
        shard.released.notify_all();
    }
}

/// A panic while a shard was locked leaves a map that is still whole.
fn guard(shard: &Shard) -> Held<'_> {
    shard.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        free(self.shard, self.place);
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
        assert_eq!([locks.claim(place, 1), locks.claim(place, 1)], [Claim::Taken, Claim::Own]);
        assert_eq!(locks.claim(place, 2), Claim::Refused);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| locks.lock(place, &interrupt).map(drop));
            std::thread::sleep(Duration::from_millis(30));
            assert!(!waits.is_finished());
            locks.release(place);
            waits.join().unwrap().unwrap();
        });
        assert_eq!(locks.claim(place, 2), Claim::Taken);
        assert!(!locks.wait_unclaimed((7, 2), &interrupt).unwrap());
    }

    #[test]
    fn whoever_waits_can_be_interrupted() {
        let locks = Locks::new();
        assert_eq!(locks.claim((7, 1), 1), Claim::Taken);
        let interrupt = Interrupt::default();
        interrupt.raise(Code::MaxTimeMSExpired);
        assert_eq!(locks.lock((7, 1), &interrupt).err().unwrap().code(), Code::MaxTimeMSExpired);
        assert_eq!(locks.wait_unclaimed((7, 1), &interrupt).unwrap_err().code(), Code::MaxTimeMSExpired);
    }
}
