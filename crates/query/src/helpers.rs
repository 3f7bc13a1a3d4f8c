//! Threads that a command may borrow while nobody else needs the processors. A trait here, because who else is there only
//! the server knows.

use std::fmt::Debug;
use std::sync::Arc;

pub trait Helpers: Debug + Send + Sync {
    /// Whether a processor is left that no command uses. Quickly told; [`Helpers::help`] looks closer.
    fn has_room(&self) -> bool;

    /// Runs the task on another thread; false, and the task is gone, if there is no free processor.
    fn help(self: Arc<Self>, task: Box<dyn FnOnce() + Send>) -> bool;

    /// Whether there are by now more who compute than processors, so that a helper had better leave.
    fn is_crowded(&self) -> bool;

    /// The command is about to wait until others have done something for it: who shares its thread need not.
    fn waits(&self) {}
}
