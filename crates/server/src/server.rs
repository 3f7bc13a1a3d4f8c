//! The server's state, shared by all its threads, and its life: start, serve, stop.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use espalier_query::Interrupt;
use espalier_store::Store;
use espalier_value::{Code, ObjectId};

use crate::auth::Auth;
use crate::client::{Client, Clients};
use crate::clock::Clock;
use crate::commands;
use crate::crew::Crew;
use crate::cursors::Cursors;
use crate::expire;
use crate::fail_point::FailPoints;
use crate::ids::Ids;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::net::{After, Budget, Connection, Crowd, LINGER, Listener, Parker, Pool, Tls, Wake, Work, tls};
use crate::notifier::Notifier;
use crate::observe::{self, Profiler, Top};
use crate::options::Options;
use crate::parameters::Parameters;
use crate::sessions::{Gone, Lsid, Sessions, uuid_text};
use crate::timer::Timer;

pub struct Server {
    pub options: Options,
    pub store: Arc<dyn Store>,
    pub auth: Auth,
    pub log: Log,
    pub clock: Clock,
    pub ids: Ids,
    pub clients: Clients,
    pub(crate) crew: Arc<Crew>,
    pub cursors: Cursors,
    pub sessions: Sessions,
    pub notifier: Notifier,
    pub timer: Timer,
    pub metrics: Metrics,
    pub(crate) profiler: Profiler,
    pub(crate) top: Top,
    pub parameters: Parameters,
    pub fail_points: FailPoints,
    /// Tells one run of the server from the next, for `topologyVersion`.
    pub process_id: ObjectId,
    /// `fsync` with `lock` holds writes back while this is above zero.
    pub fsync_locks: FsyncLocks,
    tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) replies: Arc<Budget>,
    pub(crate) crowd: Crowd,
    parker: Parker,
    listener: Listener,
    /// For the metrics page.
    metrics_listener: Option<Listener>,
    local: SocketAddr,
    stopping: AtomicBool,
    stop_wanted: (Mutex<bool>, Condvar),
    /// Raised when the server stops, for what it does on its own account.
    pub(crate) stop_interrupt: Interrupt,
    next_client: AtomicU64,
    next_operation: AtomicU64,
    next_request: AtomicI32,
}

/// Writers wait here while an operator copies the files.
#[derive(Default)]
pub struct FsyncLocks {
    count: Mutex<u64>,
    released: Condvar,
}

/// How often cursors, sessions and abandoned commands are looked after.
const HOUSEKEEPING: Duration = Duration::from_millis(500);
/// A command younger than this is not checked for a client that has gone away.
const ABANDONED_AFTER: Duration = Duration::from_millis(500);
/// A client that takes no byte of its reply for this long is cut off.
const WRITE_STALL_MAX: Duration = Duration::from_secs(30);
/// How long a stop waits for commands to notice.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// A server that accepts connections; stops when told to, or when dropped.
pub struct Serving {
    server: Arc<Server>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts serving a store.
pub fn start(options: Options, store: Arc<dyn Store>) -> io::Result<Serving> {
    let listener = Listener::bind(&options.listen)?;
    let local = listener.local_addr()?;
    let metrics_listener = options.metrics.as_deref().map(Listener::bind).transpose()?;
    let ids = Ids::new();
    let limits = &options.limits;
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let server = Arc::new(Server {
        auth: Auth::new(options.auth).map_err(io::Error::other)?,
        log: Log::new(options.log_level, options.log_format),
        clock: Clock::new(Arc::clone(&store)),
        clients: Clients::default(),
        crew: Crew::of_machine(),
        cursors: Cursors::new(limits.cursors_max as usize, Duration::from_secs(limits.cursor_timeout_seconds)),
        sessions: Sessions::new(limits.sessions_max as usize, Duration::from_secs(limits.session_timeout_minutes * 60)),
        notifier: Notifier::default(),
        timer: Timer::default(),
        metrics: Metrics::new(commands::known().count()),
        profiler: Profiler::new(limits.slow_ms),
        top: Top::default(),
        parameters: Parameters::new(limits),
        fail_points: FailPoints::default(),
        process_id: ids.object_id(),
        fsync_locks: FsyncLocks::default(),
        tls: options.tls.as_ref().map(tls::load).transpose().map_err(io::Error::other)?,
        pool: Arc::new(Pool::new(limits.threads_max as usize, processors)),
        budget: Budget::new(limits.in_flight_bytes_max),
        replies: Budget::new(limits.in_flight_reply_bytes_max),
        crowd: Crowd::new(processors)?,
        parker: Parker::new()?,
        listener,
        metrics_listener,
        local,
        stopping: AtomicBool::new(false),
        stop_wanted: Default::default(),
        stop_interrupt: Interrupt::default(),
        next_client: AtomicU64::new(1),
        next_operation: AtomicU64::new(1),
        next_request: AtomicI32::new(1),
        ids,
        store,
        options,
    });
    match server.store.remembered_sessions() {
        Ok(remembered) => server.sessions.restore(&remembered),
        Err(error) => return Err(io::Error::other(error.to_string())),
    }
    if let Err(error) = crate::output::sweep(&*server.store) {
        let error = error.to_string();
        server.log.warn("control", "temporary collections could not be dropped", &[("error", &error)]);
    }
    let told = Arc::downgrade(&server);
    server.store.on_change(Box::new(move || {
        if let Some(server) = told.upgrade() {
            server.stir();
        }
    }));
    let spawn = |name: &str, run: fn(&Arc<Server>)| {
        let server = Arc::clone(&server);
        thread::Builder::new().name(name.into()).spawn(move || run(&server))
    };
    let mut threads = vec![
        spawn("accept", Server::accept)?,
        spawn("parker", Server::watch)?,
        spawn("crowd", Server::watch_crowd)?,
        spawn("timer", Server::keep_time)?,
        spawn("ttl", expire::run)?,
    ];
    if server.metrics_listener.is_some() {
        threads.push(spawn("metrics", Server::show_metrics)?);
    }
    Ok(Serving { server, threads })
}

impl Serving {
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.server.local
    }

    /// Blocks until somebody asks for the end: [`Server::want_stop`], or the `shutdown` command.
    pub fn wait(&self) {
        self.server.wait_for_stop(None);
    }

    /// Stops accepting, ends commands and cursors, closes every connection, and writes out what is in memory.
    pub fn stop(mut self) -> espalier_value::Result<()> {
        self.end();
        self.server.store.flush()
    }

    fn end(&mut self) {
        if self.server.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        let server = &self.server;
        server.want_stop();
        server.stop_interrupt.raise(Code::InterruptedAtShutdown);
        server.listener.stop();
        if let Some(listener) = &server.metrics_listener {
            listener.stop();
        }
        server.clients.stop_all();
        server.wake_all();
        server.fsync_locks.release_all();
        for connection in server.parker.stop() {
            server.closed(&connection);
        }
        if !server.pool.stop(STOP_PATIENCE) {
            server.log.warn("control", "some commands did not end in time", &[]);
        }
        for connection in server.crowd.stop() {
            server.closed(&connection);
        }
        server.timer.stop();
        server.cursors.clear();
        for thread in self.threads.drain(..) {
            // A panic of such a thread has been reported by the panic hook already.
            let _ = thread.join();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end();
    }
}

impl Server {
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Memory of large requests and of large replies that are under way.
    pub fn in_flight_bytes(&self) -> (u64, u64) {
        (self.budget.used(), self.replies.used())
    }

    /// Where the metrics page is.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics_listener.as_ref()?.local_addr().ok()
    }

    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Active connections that share threads.
    pub fn grouped(&self) -> usize {
        self.crowd.members()
    }

    /// Asks for the end; whoever waits in [`Serving::wait`] brings it about.
    pub fn want_stop(&self) {
        *self.stop_wanted.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop_wanted.1.notify_all();
    }

    /// Blocks until a stop is wanted, or for that long. True if it is.
    pub fn wait_for_stop(&self, patience: Option<Duration>) -> bool {
        let (wanted, changed) = (&self.stop_wanted.0, &self.stop_wanted.1);
        let guard = wanted.lock().unwrap_or_else(PoisonError::into_inner);
        match patience {
            None => *changed.wait_while(guard, |wanted| !*wanted).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                let waited = changed.wait_timeout_while(guard, patience, |wanted| !*wanted);
                *waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    pub fn next_operation_id(&self) -> u64 {
        self.next_operation.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn next_request_id(&self) -> i32 {
        self.next_request.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends a session with its cursors and its transaction.
    pub fn end_session(&self, lsid: &Lsid) {
        self.cursors.kill_session(lsid);
        if let Some(gone) = self.sessions.end(lsid) {
            self.forget(&gone);
        }
    }

    /// What a session leaves in the store is of no use without it.
    fn forget(&self, gone: &Gone) {
        if gone.wrote
            && let Err(error) = self.store.forget(&gone.key, 0)
        {
            self.log.warn("command", "a session's statements could not be forgotten", &[("error", &error)]);
        }
    }

    fn look_after_sessions(&self) {
        let lifetime = self.parameters.transaction_lifetime();
        for (session, number) in self.sessions.abort_overdue(lifetime) {
            let session = uuid_text(&session);
            let fields: [crate::log::Field<'_>; 2] = [("session", &session), ("txnNumber", &number)];
            self.log.info("command", "a transaction was aborted: it was open for too long", &fields);
        }
        self.sessions.expire().iter().for_each(|gone| self.forget(gone));
    }

    fn accept(self: &Arc<Self>) {
        let failed = |error: &io::Error| {
            self.log.error("network", "a connection could not be accepted", &[("error", error)]);
        };
        self.listener.run(|stream, peer| self.welcome(stream, peer), failed);
    }

    fn show_metrics(self: &Arc<Self>) {
        if let Some(listener) = &self.metrics_listener {
            observe::serve(self, listener);
        }
    }

    fn welcome(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        if self.clients.len() as u64 >= self.options.limits.connections_max {
            self.metrics.connections_refused.add(1);
            let max = self.options.limits.connections_max;
            self.log.warn("network", "connection refused: too many are open", &[("peer", &peer), ("max", &max)]);
            return;
        }
        let prepared = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| stream.set_read_timeout(Some(LINGER)))
            .and_then(|()| stream.set_write_timeout(Some(WRITE_STALL_MAX)))
            .and_then(|()| rustix::net::sockopt::set_socket_keepalive(&stream, true).map_err(io::Error::from))
            .and_then(|()| stream.local_addr());
        let local = match prepared {
            Ok(local) => local,
            // Gone before it was greeted.
            Err(error) => return self.log.debug("network", "connection lost", &[("peer", &peer), ("error", &error)]),
        };
        let id = self.next_client.fetch_add(1, Ordering::Relaxed);
        let client = Arc::new(Client::new(id, stream, peer, local, self.tls.is_some()));
        self.clients.insert(Arc::clone(&client));
        self.metrics.connections_created.add(1);
        if !self.parameters.is_quiet() {
            self.log.debug("network", "connection accepted", &[("peer", &peer), ("connection", &id)]);
        }
        let tls = match self.tls.as_ref().map(Tls::new).transpose() {
            Ok(tls) => tls.map(Box::new),
            Err(error) => {
                self.clients.remove(id);
                return self.log.error("network", "TLS could not begin", &[("peer", &peer), ("error", &error)]);
            }
        };
        let connection = Connection::new(client, Arc::clone(self), tls);
        let until = connection.handshake_until();
        self.park(Box::new(connection), until, None);
    }

    fn park(&self, connection: Box<Connection>, until: Option<std::time::Instant>, seen: Option<u64>) {
        if let Err(connection) = self.parker.park(connection, until, seen.is_some()) {
            return self.closed(&connection);
        }
        // What happened before it was parked did not stir it.
        if seen.is_some_and(|seen| seen != self.notifier.version()) {
            self.parker.stir();
        }
    }

    /// Lets change streams look whether there is something for them.
    pub(crate) fn stir(&self) {
        self.notifier.changed();
        self.parker.stir();
    }

    /// Lets everyone who waits look whether they should still.
    pub(crate) fn wake_all(&self) {
        self.notifier.wake_tailing();
        self.stir();
    }

    fn closed(&self, connection: &Connection) {
        if !self.parameters.is_quiet() {
            self.log.debug("network", "connection closed", &[("connection", &connection.key())]);
        }
        self.clients.remove(connection.key() as u64);
    }

    fn watch(self: &Arc<Self>) {
        self.parker.run(|connection, wake| {
            self.crowd.enter();
            match wake {
                Wake::Readable if connection.fits_a_crowd() => self.settle(connection, After::Join),
                _ => self.employ(Work::Serve(connection, wake)),
            }
        });
    }

    fn watch_crowd(self: &Arc<Self>) {
        self.crowd.watch(|turn| self.employ(Work::Drive(turn)));
    }

    pub(crate) fn employ(self: &Arc<Self>, work: Work) {
        let server = Arc::clone(self);
        self.pool.submit(work, move |work| match work {
            Work::Serve(mut connection, wake) => {
                let after = connection.serve(wake);
                server.settle(connection, after);
            }
            Work::Drive(turn) => server.crowd.drive(turn, &server),
        });
    }

    /// What becomes of a connection that has been served.
    pub(crate) fn settle(self: &Arc<Self>, connection: Box<Connection>, after: After) {
        match after {
            After::Park(until, seen) => {
                self.crowd.leave();
                self.park(connection, until, seen);
            }
            After::Close => {
                self.crowd.leave();
                self.closed(&connection);
            }
            After::Own | After::Stay => self.employ(Work::Serve(connection, Wake::Readable)),
            After::Join => match self.crowd.join(connection) {
                Ok(Some(turn)) => self.employ(Work::Drive(turn)),
                Ok(None) => {}
                Err(connection) => self.employ(Work::Serve(connection, Wake::Readable)),
            },
        }
    }

    fn keep_time(self: &Arc<Self>) {
        let housekeeping = || {
            // Change streams are told only if one of them may be meant: there may be thousands, and idle they cost
            // nothing.
            match self.clients.interrupt_abandoned(ABANDONED_AFTER) {
                0 => self.notifier.wake_tailing(),
                _ => self.wake_all(),
            }
            self.cursors.expire();
            self.look_after_sessions();
        };
        self.timer.run(HOUSEKEEPING, housekeeping, || self.wake_all());
    }
}

impl FsyncLocks {
    pub fn lock(&self) -> u64 {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        *count
    }

    /// The locks that remain, or `None` if there was none.
    pub fn unlock(&self) -> Option<u64> {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.checked_sub(1)?;
        if *count == 0 {
            self.released.notify_all();
        }
        Some(*count)
    }

    pub fn is_locked(&self) -> bool {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) > 0
    }

    fn release_all(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        self.released.notify_all();
    }

    /// Waits until writing is allowed, looking at `check` now and then.
    pub fn wait(&self, check: impl Fn() -> espalier_value::Result<()>) -> espalier_value::Result<()> {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            check()?;
            let pause = Duration::from_millis(100);
            count = self.released.wait_timeout(count, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}
