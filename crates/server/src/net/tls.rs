//! TLS: certificates from files, and the encrypted side of a connection.
//!
//! A connection reads records only when no decrypted byte is left, so that one which waits in epoll has nothing to read that
//! epoll does not know of; [`Tls::has_plaintext`] is for who parks without having tried to read.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::options::TlsFiles;

/// A client that has not finished its handshake by then is cut off.
pub(crate) const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Reads the certificates. What is wrong with them is said in words for the operator.
pub fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
    let certificates = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| format!("no private key can be read from '{}': {error}", files.key.display()))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match &files.authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in self::certificates(path)? {
                let added = roots.add(certificate);
                added.map_err(|error| format!("'{}' holds no usable authority: {error}", path.display()))?;
            }
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()));
            let verifier = if files.allow_no_client_cert { verifier.allow_unauthenticated() } else { verifier };
            builder.with_client_cert_verifier(verifier.build().map_err(|error| error.to_string())?)
        }
    };
    let config = builder.with_single_cert(certificates, key);
    config.map(Arc::new).map_err(|error| format!("certificate and key cannot be used together: {error}"))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable =
        |why: &dyn std::fmt::Display| format!("no certificate can be read from '{}': {why}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| unreadable(&error))?;
    if found.is_empty() { Err(unreadable(&"it holds none")) } else { Ok(found) }
}

pub(crate) struct Tls {
    connection: ServerConnection,
    begun: Instant,
}

impl Tls {
    pub fn new(config: &Arc<ServerConfig>) -> io::Result<Tls> {
        let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        Ok(Tls { connection, begun: Instant::now() })
    }

    /// Until when the handshake has to be done; `None` once it is.
    pub fn handshake_until(&self) -> Option<Instant> {
        self.connection.is_handshaking().then(|| self.begun + HANDSHAKE_MAX)
    }

    /// Whom the client's certificate names. It has been verified: without an authority none is asked for.
    pub fn subject(&self) -> Option<String> {
        crate::auth::subject::subject(self.connection.peer_certificates()?.first()?)
    }

    /// Whether decrypted bytes wait to be read.
    pub fn has_plaintext(&mut self) -> bool {
        self.connection.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }

    /// As reading from the socket: blocks as long as `incoming` does, and gives zero at the end.
    pub fn read(&mut self, stream: &TcpStream, incoming: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if self.handshake_until().is_some_and(|until| Instant::now() >= until) {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the TLS handshake takes too long"));
            }
            if self.connection.read_tls(incoming)? == 0 {
                // Without a farewell; drivers do that, and every message says how long it is.
                return Ok(0);
            }
            let processed = self.connection.process_new_packets();
            // Also an alert that says what was wrong with what came.
            let sent = self.flush(stream);
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            sent?;
        }
    }

    pub fn write_all(&mut self, stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let taken = self.connection.writer().write(bytes)?;
            bytes = &bytes[taken..];
            self.flush(stream)?;
        }
        Ok(())
    }

    fn flush(&mut self, stream: &TcpStream) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut &*stream)?;
        }
        Ok(())
    }
}
