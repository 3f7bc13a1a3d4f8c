//! Accepting connections until told to stop.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polling::{Event, Events, Poller};

pub(crate) struct Listener {
    listener: TcpListener,
    poller: Poller,
    stopped: AtomicBool,
}

const KEY: usize = 0;

impl Listener {
    pub fn bind(address: &str) -> io::Result<Listener> {
        let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        let listener = TcpListener::bind(&addresses[..])?;
        listener.set_nonblocking(true)?;
        let poller = Poller::new()?;
        // SAFETY: the socket and the poller are dropped together, with this struct.
        unsafe { poller.add(&listener, Event::readable(KEY))? };
        Ok(Listener { listener, poller, stopped: AtomicBool::new(false) })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Runs until stopped. `failed` hears of errors that are not the client's (too many open files).
    pub fn run(&self, mut accepted: impl FnMut(TcpStream, SocketAddr), mut failed: impl FnMut(&io::Error)) {
        let mut events = Events::new();
        while !self.stopped.load(Ordering::Acquire) {
            match self.listener.accept() {
                Ok((stream, peer)) => accepted(stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    events.clear();
                    let waited = self
                        .poller
                        .modify(&self.listener, Event::readable(KEY))
                        .and_then(|()| self.poller.wait(&mut events, None));
                    if waited.is_err() {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
                Err(error) if is_the_clients(&error) => {}
                Err(error) => {
                    failed(&error);
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let _ = self.poller.notify();
    }
}

fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(error.kind(), K::ConnectionAborted | K::ConnectionReset | K::Interrupted | K::TimedOut)
}
