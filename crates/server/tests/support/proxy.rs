//! A proxy that cuts connections: before a request has arrived, while it is carried out, after it was carried out and
//! before its reply, and in the middle of the reply.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use espalier_wire::read_message;

use super::Random;

/// How many requests met which end.
#[derive(Default)]
pub struct Cuts {
    pub before: AtomicU64,
    pub during: AtomicU64,
    pub after: AtomicU64,
    pub inside: AtomicU64,
}

impl Cuts {
    pub fn total(&self) -> u64 {
        [&self.before, &self.during, &self.after, &self.inside].iter().map(|cuts| cuts.load(Ordering::Relaxed)).sum()
    }
}

/// Starts a proxy to a server; it lives as long as the test's process.
pub fn start(server: SocketAddr) -> (SocketAddr, Arc<Cuts>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let cuts = Arc::new(Cuts::default());
    let counted = Arc::clone(&cuts);
    std::thread::spawn(move || {
        for (seed, stream) in listener.incoming().enumerate() {
            let cuts = Arc::clone(&counted);
            std::thread::spawn(move || relay(stream.unwrap(), server, &mut Random::new(seed as u64 + 1), &cuts));
        }
    });
    (address, cuts)
}

/// The whole of a message's bytes; `None` when there are no more.
fn message(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    let header = read_message(from, &mut body, 1 << 30).ok()??;
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend_from_slice(&body);
    Some(bytes)
}

fn relay(mut client: TcpStream, server: SocketAddr, random: &mut Random, cuts: &Cuts) {
    let Ok(mut server) = TcpStream::connect(server) else { return };
    server.set_nodelay(true).unwrap();
    client.set_nodelay(true).unwrap();
    while let Some(request) = message(&mut client) {
        let fate = random.below(12);
        if fate == 0 {
            cuts.before.fetch_add(1, Ordering::Relaxed);
            let part = random.below(request.len() as u64) as usize;
            let _ = server.write_all(&request[..part]);
            break;
        }
        if server.write_all(&request).is_err() {
            break;
        }
        if fate == 1 {
            cuts.during.fetch_add(1, Ordering::Relaxed);
            break;
        }
        let Some(reply) = message(&mut server) else { break };
        if fate == 2 {
            cuts.after.fetch_add(1, Ordering::Relaxed);
            break;
        }
        if fate == 3 {
            cuts.inside.fetch_add(1, Ordering::Relaxed);
            let _ = client.write_all(&reply[..reply.len() / 2]);
            break;
        }
        if client.write_all(&reply).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
