//! The ways in which a server's life ends in these tests.

use std::time::{Duration, Instant};

use crate::error::{Result, err};
use crate::process::Killable;
use crate::random::Random;

/// A stop in good order takes no longer than this.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// How a round ends, drawn from its seed.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    /// kill -9.
    Kill,
    /// kill -9, and again while the server recovers from it, a few times.
    KillInRecovery { times: u64, after: Duration },
    /// SIGTERM, and kill -9 while the server stops.
    KillInShutdown { after: Duration },
    /// SIGTERM; the exit code must be 0.
    Terminate,
}

impl Ending {
    pub fn draw(random: &mut Random) -> Ending {
        match random.below(100) {
            0..55 => Ending::Kill,
            55..75 => Ending::KillInRecovery {
                times: 1 + random.below(3),
                after: Duration::from_micros(random.below(100_000)),
            },
            75..88 => Ending::KillInShutdown { after: Duration::from_micros(random.below(60_000)) },
            _ => Ending::Terminate,
        }
    }

    /// Ends the server this way; returns how long that took it.
    pub fn carry_out(self, server: &mut impl Killable) -> Result<Duration> {
        let begun = Instant::now();
        match self {
            Ending::Kill => server.kill(),
            Ending::KillInRecovery { times, after } => {
                server.kill();
                for _ in 0..times {
                    server.spawn()?;
                    std::thread::sleep(after);
                    server.kill();
                }
            }
            Ending::KillInShutdown { after } => {
                server.terminate()?;
                std::thread::sleep(after);
                server.kill();
            }
            Ending::Terminate => {
                server.terminate()?;
                let status = server.wait(STOP_TIMEOUT)?;
                if !status.success() {
                    return Err(err!("after SIGTERM the server ended with {status}"));
                }
            }
        }
        Ok(begun.elapsed())
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Kill => write!(f, "kill -9"),
            Ending::KillInRecovery { times, after } => {
                write!(f, "kill -9, and {times} times more {:.0} ms into the recovery", after.as_secs_f64() * 1e3)
            }
            Ending::KillInShutdown { after } => {
                write!(f, "SIGTERM and kill -9 {:.0} ms later", after.as_secs_f64() * 1e3)
            }
            Ending::Terminate => write!(f, "SIGTERM"),
        }
    }
}
