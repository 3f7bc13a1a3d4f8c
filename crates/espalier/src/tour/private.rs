//! The server of a tour: on a free port, with its data in a temporary folder that goes with it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use espalier_engine::Engine;
use espalier_patterns::Patterned;
use espalier_server::log::Level;
use espalier_server::{Options, Serving, start};
use signal_hook::iterator::{Handle, Signals};

use super::Result;
use crate::serve::engine_options;

const CACHE_BYTES: u64 = 256 << 20;

pub struct Private {
    running: Option<(Serving, Arc<Patterned>, Engine)>,
    address: SocketAddr,
    folder: PathBuf,
    signals: Handle,
    watcher: Option<JoinHandle<()>>,
}

impl Private {
    /// Starts one; a signal sets the flag and ends the wait.
    pub fn start(interrupted: &Arc<AtomicBool>, watched: &[i32]) -> Result<Private> {
        // Before anything is made that would have to be cleaned up.
        let mut signals = Signals::new(watched)?;
        let folder = make_folder()?;
        let started = open(&folder).inspect_err(|_| {
            // The error that matters is the first.
            let _ = std::fs::remove_dir_all(&folder);
        })?;
        let address = started.0.local_addr();
        let (handle, server, flag) = (signals.handle(), Arc::clone(started.0.server()), Arc::clone(interrupted));
        let watcher = std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                flag.store(true, Ordering::Relaxed);
                server.want_stop();
            }
        });
        Ok(Private { running: Some(started), address, folder, signals: handle, watcher: Some(watcher) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn uri(&self) -> String {
        format!("mongodb://{}/", self.address)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Until somebody wants it to stop.
    pub fn wait(&self) {
        if let Some((serving, _, _)) = &self.running {
            serving.wait();
        }
    }

    /// Ends it and removes its data.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.signals.close();
        if let Some(watcher) = self.watcher.take() {
            // Nothing it could have panicked with matters now.
            let _ = watcher.join();
        }
        let Some((serving, store, engine)) = self.running.take() else { return Ok(()) };
        let stopped = serving.stop();
        store.close();
        let closed = stopped.and_then(|()| engine.close()).map_err(|error| error.message().to_owned());
        let removed = std::fs::remove_dir_all(&self.folder);
        closed?;
        Ok(removed?)
    }
}

/// Also when a chapter fails.
impl Drop for Private {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("espalier: the tour's server did not end in good order: {error}");
        }
    }
}

/// A folder that nobody else has.
fn make_folder() -> Result<PathBuf> {
    for attempt in 0..100 {
        let folder = std::env::temp_dir().join(format!("espalier-tour-{}-{attempt}", std::process::id()));
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("{}: {error}", folder.display()).into()),
            Ok(()) => return Ok(folder),
        }
    }
    Err("no name for a temporary folder is free".into())
}

fn open(folder: &Path) -> Result<(Serving, Arc<Patterned>, Engine)> {
    let options = Options {
        listen: "127.0.0.1:0".into(),
        log_level: Level::Error,
        data: folder.to_string_lossy().into_owned(),
        ..Options::default()
    };
    let (engine, _) = Engine::open(engine_options(folder.to_path_buf(), CACHE_BYTES, &options.limits))
        .map_err(|error| error.message().to_owned())?;
    let store = Patterned::open(Arc::new(engine.clone())).map_err(|error| error.message().to_owned())?;
    let store = Arc::new(store);
    let serving = start(options, store.clone())?;
    Ok((serving, store, engine))
}
