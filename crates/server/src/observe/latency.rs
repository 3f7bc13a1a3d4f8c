//! How long commands take: a sum, a count, and a histogram with a bucket for each power of two microseconds.

use crate::metrics::Counter;

/// Buckets up to 2^25 µs (33 s), and one for everything longer.
const BUCKETS: usize = 26;

pub(crate) struct Histogram {
    buckets: [Counter; BUCKETS + 1],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: std::array::from_fn(|_| Counter::default()) }
    }
}

impl Histogram {
    fn record(&self, micros: u64) {
        // The bucket whose upper bound is the first power of two that is not less.
        let at = (u64::BITS - micros.saturating_sub(1).leading_zeros()) as usize;
        self.buckets[at.min(BUCKETS)].add(1);
    }

    /// Upper bounds in microseconds, and how many were within them and above the one before. `None`: no upper bound.
    pub fn counts(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        self.buckets.iter().enumerate().map(|(at, count)| ((at < BUCKETS).then_some(1 << at), count.get()))
    }
}

#[derive(Default)]
pub(crate) struct Latency {
    pub micros: Counter,
    pub ops: Counter,
    pub histogram: Histogram,
}

impl Latency {
    pub fn record(&self, micros: u64) {
        self.micros.add(micros);
        self.ops.add(1);
        self.histogram.record(micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_below_the_next_power_of_two() {
        let latency = Latency::default();
        for micros in [0, 1, 2, 3, 4, 5, 1024, 1025, u64::MAX] {
            latency.record(micros);
        }
        let filled: Vec<_> = latency.histogram.counts().filter(|(_, count)| *count > 0).collect();
        let expected =
            [(Some(1), 2), (Some(2), 1), (Some(4), 2), (Some(8), 1), (Some(1024), 1), (Some(2048), 1), (None, 1)];
        assert_eq!(filled, expected);
        assert_eq!(latency.ops.get(), 9);
    }
}
