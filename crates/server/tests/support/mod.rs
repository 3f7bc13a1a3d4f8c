//! What the socket tests share: a server on an engine in memory, and a client that writes the protocol's bytes itself.
#![allow(dead_code, unused_imports, clippy::unwrap_used)]

pub mod client;
pub mod proxy;
pub mod scram;
pub mod session;

use std::sync::Arc;

use espalier_engine::{Engine, EngineOptions};
use espalier_server::log::Level;
use espalier_server::{Options, Serving, start};

pub use client::Client;
pub use session::Session;

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

/// How long a test that could go on for ever goes on: briefly, or as long as `ESPALIER_TEST_SECONDS` says.
pub fn seconds(brief: f64) -> f64 {
    std::env::var("ESPALIER_TEST_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(brief)
}

/// Numbers that differ from seed to seed and not from run to run (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}
