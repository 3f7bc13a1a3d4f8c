//! What a check found that must not be.

use crate::error::{Result, err};

/// How many violations are shown; the first few tell what the rest would.
const SHOWN_MAX: usize = 12;

/// The violations of one check, and how much was looked at.
#[derive(Debug, Default)]
pub struct Problems {
    found: Vec<String>,
    pub checked: u64,
}

impl Problems {
    pub fn add(&mut self, problem: String) {
        self.found.push(problem);
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// How many things were checked, or an error with what is wrong.
    pub fn verdict(mut self) -> Result<u64> {
        if self.found.is_empty() {
            return Ok(self.checked);
        }
        let count = self.found.len();
        self.found.truncate(SHOWN_MAX);
        self.found.iter_mut().for_each(|problem| *problem = problem.chars().take(1000).collect());
        Err(err!("{count} violations\n  {}", self.found.join("\n  ")))
    }
}
