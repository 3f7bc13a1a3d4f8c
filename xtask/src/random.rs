//! Random numbers from a seed: the same seed gives the same run, on every machine.

/// SplitMix64: small, fast, and good enough to choose test data with.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A generator of its own for the nth part of a run.
    pub fn part(seed: u64, number: u64) -> Random {
        let mut mix = Random(seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        Random(mix.next())
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, or zero if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }

    /// A number from `start` to `end`, both included.
    pub fn between(&mut self, start: i64, end: i64) -> i64 {
        start + self.below((end - start + 1) as u64) as i64
    }

    /// True in `of` cases out of `outof`.
    pub fn chance(&mut self, of: u64, outof: u64) -> bool {
        self.below(outof) < of
    }

    /// One of the choices; they must not be empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}

/// A seed for a run that was not given one.
pub fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |elapsed| elapsed.as_nanos() as u64 % 1_000_000_000)
}
