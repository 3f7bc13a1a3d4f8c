//! The stores of this project: the engine in memory and in a folder, and patterns on an engine.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use espalier_engine::{Engine, EngineOptions};
use espalier_patterns::Patterned;
use espalier_store_contract::contract;

fn in_memory() -> Arc<Engine> {
    Arc::new(Engine::open(EngineOptions::default()).unwrap().0)
}

/// An engine in a folder that goes with it.
struct InFolder {
    engine: Engine,
    folder: PathBuf,
}

impl std::ops::Deref for InFolder {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Drop for InFolder {
    fn drop(&mut self) {
        // What is left of it is the machine's to sweep up.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn in_folder() -> InFolder {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder: PathBuf = std::env::temp_dir().join(format!("espalier-contract-{}-{number}", std::process::id()));
    let options = EngineOptions { folder: Some(folder.clone()), ..EngineOptions::default() };
    InFolder { engine: Engine::open(options).unwrap().0, folder }
}

mod engine_in_memory {
    use super::*;
    contract!(in_memory);
}

mod engine_in_a_folder {
    use super::*;
    contract!(in_folder);
}

mod patterns_on_an_engine {
    use super::*;
    contract!(|| Arc::new(Patterned::open(in_memory()).unwrap()));
}
