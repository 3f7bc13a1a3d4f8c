//! From the time of a commit to its number.
//!
//! Stamps go on by one from commit to commit as long as the second does not change, so it is enough to remember the
//! commits where they jumped: one a second at most.

use std::collections::VecDeque;

use crate::varint::{self, Reader};

/// A commit whose stamp is not the one after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Jump {
    stamp: u64,
    seq: u64,
}

/// The stamps of all commits since some moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Times {
    jumps: VecDeque<Jump>,
    /// The last commit's.
    last: Option<Jump>,
    /// The last commit before those that are remembered, and a time at which it was; only of a database that was just
    /// made or is of an older format.
    start: Option<Jump>,
}

impl Times {
    /// If nothing is remembered: what comes is all that there is after this.
    pub(crate) fn begin(&mut self, stamp: u64, seq: u64) {
        if self.jumps.is_empty() {
            self.start = Some(Jump { stamp, seq });
        }
    }

    /// Notes a commit; they come in order.
    pub(crate) fn note(&mut self, stamp: u64, seq: u64) {
        let next = self.last.map(|last| Jump { stamp: last.stamp + 1, seq: last.seq + 1 });
        let now = Jump { stamp, seq };
        if next != Some(now) {
            self.jumps.push_back(now);
        }
        self.last = Some(now);
    }

    /// The last commit that is not later than `stamp`; `None` if that is before what is remembered.
    pub(crate) fn seq_at(&self, stamp: u64) -> Option<u64> {
        let after = self.jumps.partition_point(|jump| jump.stamp <= stamp);
        let Some(jump) = after.checked_sub(1).and_then(|at| self.jumps.get(at)) else {
            return self.start.filter(|start| start.stamp <= stamp).map(|start| start.seq);
        };
        let last = match self.jumps.get(after) {
            Some(next) => next.seq - 1,
            None => self.last?.seq,
        };
        Some(jump.seq.saturating_add(stamp - jump.stamp).min(last))
    }

    /// Forgets what is not needed to find commits from `floor` on.
    pub(crate) fn forget(&mut self, floor: u64) {
        while self.jumps.get(1).is_some_and(|second| second.seq <= floor) {
            self.jumps.pop_front();
            self.start = None;
        }
    }

    /// Without the commits after `seq`.
    pub(crate) fn until(&self, seq: u64) -> Times {
        let jumps: VecDeque<_> = self.jumps.iter().copied().filter(|jump| jump.seq <= seq).collect();
        let last = match (jumps.back(), self.last) {
            (Some(_), Some(last)) if last.seq <= seq => Some(last),
            (Some(jump), _) => Some(Jump { stamp: jump.stamp + (seq - jump.seq), seq }),
            (None, _) => None,
        };
        Times { jumps, last, start: None }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let all = || self.jumps.iter().chain(&self.last);
        varint::put(out, all().count() as u64);
        let mut before = Jump { stamp: 0, seq: 0 };
        for jump in all() {
            varint::put(out, jump.stamp - before.stamp);
            varint::put(out, jump.seq - before.seq);
            before = *jump;
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Times> {
        let mut jumps = VecDeque::new();
        let mut before = Jump { stamp: 0, seq: 0 };
        for _ in 0..reader.varint()? {
            let stamp = before.stamp.checked_add(reader.varint()?)?;
            before = Jump { stamp, seq: before.seq.checked_add(reader.varint()?)? };
            jumps.push_back(before);
        }
        let last = jumps.pop_back();
        (last.is_none() || !jumps.is_empty()).then_some(Times { jumps, last, start: None })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn every_time_leads_to_its_commit() {
        let mut rng = Rng::new(11);
        let mut times = Times::default();
        let mut stamps: Vec<u64> = Vec::new();
        let mut stamp = 1000;
        for seq in 5..400 {
            stamp += if rng.below(4) == 0 { 2 + rng.below(50) } else { 1 };
            times.note(stamp, seq);
            stamps.push(stamp);
        }
        let naive = |at: u64| stamps.iter().rposition(|&stamp| stamp <= at).map(|n| n as u64 + 5);
        for at in 990..stamp + 10 {
            assert_eq!(times.seq_at(at), naive(at), "{at}");
        }
        let mut bytes = Vec::new();
        times.encode(&mut bytes);
        let mut read = Times::decode(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(read, times);
        read.forget(100);
        let first = read.jumps[0].seq;
        assert!(first <= 100);
        let cut = times.until(300);
        for at in 990..stamp + 10 {
            let expected = naive(at).filter(|&seq| seq >= first);
            assert_eq!(read.seq_at(at), expected, "{at}");
            assert_eq!(cut.seq_at(at), naive(at).map(|seq| seq.min(300)), "{at}");
        }
    }

    #[test]
    fn the_beginning_is_known() {
        let mut times = Times::default();
        times.begin(50, 7);
        assert_eq!((times.seq_at(49), times.seq_at(60)), (None, Some(7)));
        times.note(70, 8);
        assert_eq!((times.seq_at(49), times.seq_at(69), times.seq_at(70)), (None, Some(7), Some(8)));
        times.begin(80, 9);
        assert_eq!(times.seq_at(60), Some(7));
    }

    #[test]
    fn nothing_is_remembered_of_nothing() {
        let mut bytes = Vec::new();
        Times::default().encode(&mut bytes);
        assert_eq!(Times::decode(&mut Reader::new(&bytes)), Some(Times::default()));
        assert_eq!(Times::default().seq_at(u64::MAX), None);
        assert_eq!(Times::default().until(9), Times::default());
    }
}
