//! Servers under test as child processes, killed when dropped.

mod espalier;
mod folder;
mod mongod;
mod secure;

pub use espalier::{Build, Espalier, binary as espalier_binary};
pub use folder::TemporaryFolder;
pub use mongod::{Mongod, Topology};
pub use secure::Secure;

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use bson::doc;

use crate::client::Client;
use crate::error::{Result, err};

/// A server must answer its first ping within this time.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Which server a command works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    Espalier,
    /// The reference, which must pass its own tests: that proves the tests.
    Mongod,
}

impl std::str::FromStr for Against {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Against, String> {
        match name {
            "espalier" => Ok(Against::Espalier),
            "mongod" => Ok(Against::Mongod),
            other => Err(format!("it is espalier or mongod, not {other}")),
        }
    }
}

/// A running server.
pub trait Server {
    /// What to call it in messages.
    fn name(&self) -> &'static str;
    /// Where it listens, on 127.0.0.1.
    fn port(&self) -> u16;
    /// Its process, for its memory.
    fn process_id(&self) -> u32;

    /// Starts another one of its kind that wants TLS, certificates and users.
    fn secure(&self) -> Result<Secure>;

    /// A connection string for drivers.
    fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port())
    }

    /// A new connection.
    fn connect(&self) -> Result<Client> {
        Client::connect(self.port())
    }
}

/// A server that can be killed and started again on the same data.
pub trait Killable: Server {
    /// Kills it as `kill -9` does; the data stays.
    fn kill(&mut self);
    /// Starts it again on the same data and does not wait for anything.
    fn spawn(&mut self) -> Result<()>;
    /// Waits until it has ended by itself; one that does not is killed and an error.
    fn wait(&mut self, timeout: Duration) -> Result<ExitStatus>;
    /// Starts it again on the same data and waits until it takes writes.
    fn restart(&mut self) -> Result<()>;
    /// Where the data is.
    fn folder(&self) -> &TemporaryFolder;
    /// Leaves the data where it is, for somebody to look at.
    fn keep_data(&mut self) -> PathBuf;

    /// Asks it to end, as SIGTERM does.
    fn terminate(&self) -> Result<()> {
        let status = Command::new("kill").arg("-TERM").arg(self.process_id().to_string()).status()?;
        if status.success() { Ok(()) } else { Err(err!("cannot send SIGTERM: {status}")) }
    }
}

/// A child process that does not outlive its owner.
#[derive(Debug)]
struct Owned(Child);

impl Owned {
    /// Kills the process as `kill -9` does and waits until it is gone.
    fn kill(&mut self) {
        // It may have ended by itself; then there is nothing to kill and `wait` returns at once.
        self.0.kill().ok();
        self.0.wait().ok();
    }

    /// Waits until it has ended by itself.
    fn wait(mut self, timeout: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err(err!("the server did not end within {} seconds", timeout.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that nobody listens on at the moment.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Waits until the server takes connections; what comes through them may be encrypted.
fn wait_for_listening(port: u16, child: &mut Child) -> Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if let Some(status) = child.try_wait()? {
            return Err(err!("the server ended while starting: {status}"));
        }
        if Instant::now() > deadline {
            return Err(err!("nobody listens on port {port} for {} seconds", START_TIMEOUT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Waits until the server answers `ping` and returns that connection.
fn wait_for_ping(port: u16, child: &mut Child) -> Result<Client> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        if let Ok(mut client) = Client::connect(port)
            && client.must("admin", &doc! { "ping": 1 }).is_ok()
        {
            return Ok(client);
        }
        if let Some(status) = child.try_wait()? {
            return Err(err!("the server ended while starting: {status}"));
        }
        if Instant::now() > deadline {
            return Err(err!("no answer on port {port} for {} seconds", START_TIMEOUT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
