//! What the tests on the real binary share: a server in a process of its own, and the client of the server's own tests.
#![allow(dead_code, unused_imports, clippy::unwrap_used)]

#[path = "../../../server/tests/support/client.rs"]
pub mod client;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};

pub use client::{Client, batch, cursor_id, int};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A running server with a folder of its own, both gone when dropped.
pub struct Server {
    child: Child,
    address: SocketAddr,
    folder: PathBuf,
    arguments: Vec<String>,
    log: Arc<Mutex<String>>,
}

impl Server {
    pub fn start(arguments: &[&str]) -> Server {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("espalier-load-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let log = Arc::new(Mutex::new(String::new()));
        let arguments: Vec<String> = arguments.iter().map(|argument| argument.to_string()).collect();
        let (child, address) = Server::launch(&folder, &arguments, &log);
        Server { child, address, folder, arguments, log }
    }

    /// Kills it with -9 and starts it again on the same data, at another address.
    pub fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (self.child, self.address) = Server::launch(&self.folder, &self.arguments, &self.log);
    }

    /// The processor time it has used so far.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // After the name in parentheses: user and system time are the 12th and 13th field, in hundredths.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }

    fn launch(folder: &std::path::Path, arguments: &[String], log: &Arc<Mutex<String>>) -> (Child, SocketAddr) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_espalier"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "error", "--data"]).arg(folder);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stderr, kept) = (child.stderr.take().unwrap(), Arc::clone(log));
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "the server did not start: {}", log.lock().unwrap());
            if let Some((_, uri)) = line.trim().split_once("listening: mongodb://") {
                break uri.trim_end_matches('/').parse().unwrap();
            }
        };
        // What it prints later is read, so that it never waits for a reader.
        std::thread::spawn(move || stdout.read_to_string(&mut String::new()));
        (child, address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// A line of `/proc/<pid>/status` in KiB: `VmRSS` now, `VmHWM` at most.
    pub fn memory_kib(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Nothing it logged speaks of a panic, and every collection named is valid.
    pub fn check(&self, collections: &[&str]) {
        for collection in collections {
            let reply = self.connect().ok(doc! { "validate": *collection, "full": true });
            assert!(matches!(reply.as_raw().get("valid"), Some(ValueRef::Bool(true))), "{reply:?}");
        }
        let log = self.log.lock().unwrap();
        assert!(!log.contains("panicked"), "{log}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// An array of documents.
pub fn list(docs: impl IntoIterator<Item = DocBuf>) -> ArrayBuf {
    let mut array = ArrayBuf::new();
    docs.into_iter().for_each(|doc| {
        array.push(&doc);
    });
    array
}

/// The code of an error, of the command or of its first write; `None` if there is none.
pub fn error_code(reply: &DocBuf) -> Option<i32> {
    let raw = reply.as_raw();
    let first = raw.get("writeErrors").and_then(ValueRef::as_array).and_then(|errors| errors.iter().next());
    let of_write = || first.and_then(ValueRef::as_doc).and_then(|error| error.get("code"));
    match raw.get("code").or_else(of_write) {
        Some(ValueRef::Int32(code)) => Some(code),
        _ => None,
    }
}

/// A number of a document, whatever its type.
pub fn number(doc: espalier_value::RawDoc<'_>, name: &str) -> i64 {
    match doc.get(name) {
        Some(ValueRef::Int32(n)) => n.into(),
        Some(ValueRef::Int64(n)) => n,
        Some(ValueRef::Double(n)) => n as i64,
        other => panic!("{name}: {other:?}"),
    }
}

/// Runs the same on many threads until they are done, and returns what each gave.
pub fn together<T: Send + 'static>(count: usize, run: impl Fn(usize) -> T + Send + Sync + 'static) -> Vec<T> {
    let run = Arc::new(run);
    let threads: Vec<_> = (0..count)
        .map(|number| {
            let run = Arc::clone(&run);
            std::thread::spawn(move || run(number))
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// The longest that a command took.
#[derive(Default)]
pub struct Longest(pub Duration);

impl Longest {
    pub fn time<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = run();
        self.0 = self.0.max(begun.elapsed());
        result
    }
}

/// Numbers that look random and are the same every time.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
