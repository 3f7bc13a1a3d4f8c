//! Sockets and threads: a connection has a thread while it is active, or a place in a group that a thread drives if there
//! are many, and waits in epoll while it is not.
//!
//! Invariants:
//! - A connection is owned by exactly one of: the parker, the pool's queue, a group, a worker thread.
//! - A connection that waits holds no buffer and no thread, only its socket and a small struct.
//! - A connection that waits has no decrypted byte left to read.
//! - The bytes of large requests, received or being executed, stay below one budget, and those of replies below another:
//!   a request that waits for room for its reply must not keep others from being read.

mod budget;
mod connection;
mod crowd;
mod listener;
mod parker;
mod pool;
mod receive;
pub mod tls;

pub(crate) use budget::{Budget, Room, Share};
pub(crate) use connection::{After, Connection, LINGER, Wake};
pub(crate) use crowd::{Crowd, Turn, step_aside};
pub(crate) use listener::Listener;
pub(crate) use parker::Parker;
pub(crate) use pool::{Pool, Work};
pub(crate) use tls::Tls;
