//! The server: connections, sessions, cursors, and the commands of the MongoDB protocol on top of a [`Store`].
//!
//! A request's walk:
//! 1. `net` receives a frame on the thread that has the connection at the moment.
//! 2. `dispatch` validates the body, parses it into a [`Request`](request::Request), finds the command and checks what
//!    holds for every command.
//! 3. The command's file in `commands` reads its own fields, all of them before anything is done, and works on the store.
//! 4. The reply is written as raw BSON into the connection's buffer and sent.
//!
//! Invariants:
//! - Nothing a client sends ends more than its own connection: a panic ends one command.
//! - Every limit is a line in [`limits`].
//!
//! [`Store`]: espalier_store::Store

mod auth;
pub mod call;
mod change_streams;
mod client;
mod clock;
mod collections;
pub mod commands;
mod crew;
mod cursors;
mod dispatch;
mod expire;
mod fail_point;
mod fields;
mod generic;
mod ids;
pub mod limits;
pub mod log;
mod metrics;
mod net;
mod notifier;
mod observe;
mod options;
mod output;
mod parameters;
mod parse;
mod pipeline;
mod read_concern;
mod reply;
pub mod request;
mod server;
mod sessions;
mod timer;
mod transactions;
mod views;
mod write_batch;
mod write_concern;

pub use auth::{Action, Rights};
pub use espalier_wire::Compression;
pub use options::{Options, TlsFiles};
pub use server::{Server, Serving, start};
