//! What the socket tests share: a server on an engine in memory, and a client that writes the protocol's bytes itself.
#![allow(dead_code, clippy::unwrap_used)]

pub mod client;

use std::sync::Arc;

use espalier_engine::{Engine, EngineOptions};
use espalier_server::log::Level;
use espalier_server::{Options, Serving, start};

pub use client::Client;

pub fn options() -> Options {
    Options { listen: "127.0.0.1:0".into(), log_level: Level::Error, test_commands: true, ..Options::default() }
}

/// A server on a free port with an empty store.
pub fn serve() -> Serving {
    serve_with(options())
}

pub fn serve_with(options: Options) -> Serving {
    let (engine, _) = Engine::open(EngineOptions::default()).unwrap();
    start(options, Arc::new(engine)).unwrap()
}
