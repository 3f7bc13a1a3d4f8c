//! A connected client as the rest of the server sees it: who it is, and what it is doing right now (`currentOp`, `killOp`).

use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use espalier_query::{Interrupt, Work};
use espalier_value::{Code, DocBuf, RawDoc};

use crate::auth::identity::Identity;
use crate::auth::names::UserName;
use crate::net;
use crate::sessions::Lsid;

pub struct Client {
    pub id: u64,
    pub peer: SocketAddr,
    /// The address the client reached us at.
    pub local: SocketAddr,
    pub stream: TcpStream,
    /// What comes is encrypted, and ends with a message that says so.
    tls: bool,
    /// Whom the certificate names that the client showed, once that is known.
    subject: OnceLock<Option<String>>,
    /// Set by the first `hello`, with or without a `client` document.
    metadata: OnceLock<Option<DocBuf>>,
    operation: Mutex<Operation>,
    identity: Mutex<Identity>,
}

/// What a client is doing. One for each connection, filled anew by every command, so that keeping it costs no allocation.
#[derive(Default)]
pub struct Operation {
    pub active: bool,
    pub id: u64,
    pub started: Option<Instant>,
    pub started_ms: i64,
    pub db: String,
    /// The command's body, cut to nothing if it is large.
    pub command: Vec<u8>,
    pub session: Option<Lsid>,
    pub users: Vec<UserName>,
    pub interrupt: Interrupt,
    /// What the command waits for, if it does.
    pub waits_for: Option<&'static str>,
    /// What is looked at for it.
    pub work: Option<Arc<Work>>,
}

/// A larger command is not kept for `currentOp`.
const COMMAND_BYTES_MAX: usize = 16 * 1024;

impl Operation {
    pub fn elapsed(&self) -> Duration {
        self.started.map_or(Duration::ZERO, |started| started.elapsed())
    }

    pub fn command(&self) -> RawDoc<'_> {
        RawDoc::trusted(&self.command)
    }
}

impl Client {
    pub fn new(id: u64, stream: TcpStream, peer: SocketAddr, local: SocketAddr, tls: bool) -> Client {
        Client {
            id,
            peer,
            local,
            stream,
            tls,
            subject: OnceLock::new(),
            metadata: OnceLock::new(),
            operation: Mutex::default(),
            identity: Mutex::default(),
        }
    }

    /// The subject of the certificate that the client showed and that was found valid.
    pub fn subject(&self) -> Option<&str> {
        self.subject.get()?.as_deref()
    }

    /// Notes the subject of the client's certificate, once the handshake is done.
    pub fn certified(&self, subject: impl FnOnce() -> Option<String>) {
        self.subject.get_or_init(subject);
    }

    /// The `client` document of the handshake.
    pub fn metadata(&self) -> Option<RawDoc<'_>> {
        self.metadata.get()?.as_ref().map(DocBuf::as_raw)
    }

    /// Whether the client has said `hello`.
    pub fn is_introduced(&self) -> bool {
        self.metadata.get().is_some()
    }

    /// Notes the first `hello`, with the `client` document if there is one.
    pub fn introduce(&self, metadata: Option<DocBuf>) {
        // Of two at once the first one counts, and there is one at a time on a connection.
        let _ = self.metadata.set(metadata);
    }

    /// Who the client is authenticated as.
    pub fn identity(&self) -> MutexGuard<'_, Identity> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of those users.
    pub fn users(&self) -> Vec<UserName> {
        self.identity().users.iter().map(|user| user.name.clone()).collect()
    }

    pub fn operation(&self) -> MutexGuard<'_, Operation> {
        self.operation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command that is being executed, without its secrets, if it is short.
    pub fn current_command(&self) -> Option<DocBuf> {
        let operation = self.operation();
        (!operation.command.is_empty()).then(|| DocBuf::from_raw(operation.command()))
    }

    /// Notes the beginning of a command. It has ended when the guard is dropped.
    pub fn begin(self: &Arc<Self>, id: u64, started_ms: i64, db: &str, body: RawDoc<'_>) -> Running<'_> {
        let mut operation = self.operation();
        operation.active = true;
        operation.id = id;
        operation.started = Some(Instant::now());
        operation.started_ms = started_ms;
        operation.db.clear();
        operation.db.push_str(db);
        operation.command.clear();
        if body.as_bytes().len() <= COMMAND_BYTES_MAX {
            match crate::auth::redact(body) {
                Some(redacted) => operation.command.extend_from_slice(redacted.as_bytes()),
                None => operation.command.extend_from_slice(body.as_bytes()),
            }
        }
        operation.users.clear();
        operation.session = None;
        operation.interrupt = Interrupt::default();
        operation.waits_for = None;
        operation.work = None;
        Running { client: self, interrupt: operation.interrupt.clone() }
    }

    /// Gives back what is kept of the last command: the connection is idle, and there may be thousands.
    pub fn rest(&self) {
        let mut operation = self.operation();
        if !operation.active {
            *operation = Operation { id: operation.id, ..Operation::default() };
        }
    }

    /// Ends the connection once the command that runs has been answered.
    pub fn hang_up(&self) {
        // Fails only if the other side has hung up already.
        let _ = self.stream.shutdown(Shutdown::Read);
    }

    /// Whether the other side has closed the connection. Never waits.
    pub fn is_gone(&self) -> bool {
        use rustix::net::RecvFlags;
        if self.tls {
            // A farewell lies unread before the end: ask for the end itself.
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let mut fds = [PollFd::new(&self.stream, PollFlags::RDHUP)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
            return poll(&mut fds, Some(&at_once)).is_ok_and(|_| fds[0].revents().intersects(ended));
        }
        let mut byte = [0u8; 1];
        match rustix::net::recv(&self.stream, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((count, _)) => count == 0,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => false,
            Err(_) => true,
        }
    }
}

/// A command that is being executed.
pub struct Running<'c> {
    client: &'c Arc<Client>,
    interrupt: Interrupt,
}

impl Running<'_> {
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Notes whose command it is.
    pub fn belongs_to(&self, users: Vec<UserName>) {
        self.client.operation().users = users;
    }

    /// Notes the session that it is part of.
    pub fn is_part_of(&self, lsid: Lsid) {
        self.client.operation().session = Some(lsid);
    }

    /// Lets `currentOp` show what is looked at.
    pub fn shows(&self, work: &Arc<Work>) {
        self.client.operation().work = Some(Arc::clone(work));
    }

    /// Shows in `currentOp` that the command waits, until the guard is dropped.
    pub fn waits_for(&self, what: &'static str) -> Waits {
        self.client.operation().waits_for = Some(what);
        net::step_aside();
        Waits { client: Arc::clone(self.client), since: Instant::now() }
    }

    /// Lets `killOp` reach work that brought its own interrupt: the cursor of a `getMore`.
    pub fn adopt(&mut self, interrupt: Interrupt) {
        self.client.operation().interrupt = interrupt.clone();
        self.interrupt = interrupt;
    }
}

/// A command that waits.
pub struct Waits {
    client: Arc<Client>,
    since: Instant,
}

impl Waits {
    /// How long it has waited.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.client.operation().waits_for = None;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.client.operation().active = false;
    }
}

/// All connected clients.
#[derive(Default)]
pub struct Clients {
    all: Mutex<HashMap<u64, Arc<Client>>>,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Client>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn insert(&self, client: Arc<Client>) {
        self.lock().insert(client.id, client);
    }

    pub fn remove(&self, id: u64) {
        self.lock().remove(&id);
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub fn all(&self) -> Vec<Arc<Client>> {
        self.lock().values().cloned().collect()
    }

    /// Asks an operation to end, if it is one that `may` says yes to, given whose it is. False if it says no.
    pub fn kill(&self, operation: u64, may: impl Fn(&[UserName]) -> bool) -> bool {
        let all = self.all();
        let found = all.iter().map(|client| client.operation()).find(|found| found.active && found.id == operation);
        found.is_none_or(|found| {
            let may = may(&found.users);
            if may {
                found.interrupt.raise(Code::Interrupted);
            }
            may
        })
    }

    /// Asks every running command to end, and every connection after it.
    pub fn stop_all(&self) {
        for client in self.all() {
            client.operation().interrupt.raise(Code::InterruptedAtShutdown);
            client.hang_up();
        }
    }

    /// Ends the commands whose clients have gone away, looking only at those that have run for a while.
    pub fn interrupt_abandoned(&self, after: Duration) -> usize {
        let mut interrupted = 0;
        for client in self.all() {
            let long = {
                let operation = client.operation();
                operation.active && operation.elapsed() >= after
            };
            if long && client.is_gone() {
                client.operation().interrupt.raise(Code::ClientDisconnect);
                interrupted += 1;
            }
        }
        interrupted
    }
}
