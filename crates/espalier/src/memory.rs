//! Memory that was freed goes back to the system, also when nobody allocates any more.
//!
//! The allocator gives freed pages back only while threads allocate. After a burst of connections most threads have
//! ended and the rest sleep, and hundreds of megabytes would stay for nothing.

use std::time::Duration;

/// Long enough that a busy server hardly notices, short enough that an idle one is small.
const EVERY: Duration = Duration::from_secs(2);

/// Looks after freed memory for as long as the process lives.
pub fn give_back() {
    let started = std::thread::Builder::new().name("memory".into()).stack_size(64 << 10).spawn(|| {
        loop {
            std::thread::sleep(EVERY);
            // SAFETY: takes no pointers, and any thread may call it at any time.
            unsafe { libmimalloc_sys::mi_collect(false) }
        }
    });
    // Without it everything works and the process stays larger.
    drop(started);
}
