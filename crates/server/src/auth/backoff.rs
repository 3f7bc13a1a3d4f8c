//! What makes guessing slow: after a few failed logins of a user from an address, further ones fail without a look at the
//! proof until a while has passed, longer each time. Costs no thread, and other addresses are not locked out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::names::UserName;

/// Failures that cost nothing: people mistype.
const FREE: u32 = 5;
const FIRST: Duration = Duration::from_millis(100);
const MAX: Duration = Duration::from_secs(5);
/// Failures are forgotten after this long without another.
const MEMORY: Duration = Duration::from_secs(60);
/// More are not remembered; the oldest go first.
const REMEMBERED_MAX: usize = 10_000;

#[derive(Default)]
pub struct Backoff {
    failures: Mutex<HashMap<(IpAddr, UserName), Failures>>,
}

struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    fn pause(&self) -> Duration {
        match self.count.checked_sub(FREE) {
            None | Some(0) => Duration::ZERO,
            Some(beyond) => FIRST.saturating_mul(1 << (beyond - 1).min(16)).min(MAX),
        }
    }
}

impl Backoff {
    fn lock(&self) -> MutexGuard<'_, HashMap<(IpAddr, UserName), Failures>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an attempt comes too soon after those that failed.
    pub fn is_too_soon(&self, address: IpAddr, user: &UserName) -> bool {
        let failures = self.lock();
        failures.get(&(address, user.clone())).is_some_and(|found| found.last.elapsed() < found.pause())
    }

    pub fn failed(&self, address: IpAddr, user: &UserName) {
        let mut failures = self.lock();
        let now = Instant::now();
        if failures.len() >= REMEMBERED_MAX {
            failures.retain(|_, found| now.duration_since(found.last) < MEMORY);
        }
        if failures.len() >= REMEMBERED_MAX
            && let Some(oldest) = failures.iter().min_by_key(|(_, found)| found.last).map(|(key, _)| key.clone())
        {
            failures.remove(&oldest);
        }
        let found = failures.entry((address, user.clone())).or_insert(Failures { count: 0, last: now });
        if now.duration_since(found.last) > MEMORY {
            found.count = 0;
        }
        found.count = found.count.saturating_add(1);
        found.last = now;
    }

    pub fn succeeded(&self, address: IpAddr, user: &UserName) {
        self.lock().remove(&(address, user.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_fails_often_waits() {
        let backoff = Backoff::default();
        let user = UserName::new("u", "test");
        let (address, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..FREE {
            backoff.failed(address, &user);
            assert!(!backoff.is_too_soon(address, &user));
        }
        backoff.failed(address, &user);
        assert!(backoff.is_too_soon(address, &user));
        assert!(!backoff.is_too_soon(other, &user));
        assert!(!backoff.is_too_soon(address, &UserName::new("v", "test")));
        let pause = |count| Failures { count, last: Instant::now() }.pause();
        assert_eq!((pause(FREE), pause(FREE + 1), pause(FREE + 2), pause(99)), (Duration::ZERO, FIRST, FIRST * 2, MAX));
        backoff.succeeded(address, &user);
        assert!(!backoff.is_too_soon(address, &user));
    }
}
