//! TLS over a real socket: what is encrypted works as what is not, and nobody who takes their time holds a thread.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use espalier_server::{Options, Serving, TlsFiles};
use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};
use espalier_wire::{MAX_MESSAGE_BYTES, OpMsg, begin_op_msg, read_message};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use support::scram::login_by;
use support::{options, serve_with};

type Stream = StreamOwned<ClientConnection, TcpStream>;

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn sign(&self, name: &str) -> (String, KeyPair, CertificateDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Bikes");
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key, certificate.der().clone())
    }
}

fn folder(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("espalier-tls-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn serve(authority: &Authority, folder: &Path, clients: Option<bool>) -> Serving {
    serve_with(Options { tls: Some(files(authority, folder, clients)), ..options() })
}

fn files(authority: &Authority, folder: &Path, clients: Option<bool>) -> TlsFiles {
    let (certificate, key, _) = authority.sign("server");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    TlsFiles {
        certificate: write("server.pem", &certificate),
        key: write("server.key", &key.serialize_pem()),
        authority: clients.map(|_| write("ca.pem", &authority.issuer.pem())),
        allow_no_client_cert: clients == Some(false),
    }
}

fn connect(server: &Serving, authority: &Authority, own: Option<&Authority>) -> Stream {
    connect_as(server, authority, own.map(|own| (own, "client")))
}

/// Shows a certificate of that authority for that name.
fn connect_as(server: &Serving, authority: &Authority, own: Option<(&Authority, &str)>) -> Stream {
    let mut roots = RootCertStore::empty();
    roots.add(authority.issuer.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some((own, name)) => {
            let (_, key, certificate) = own.sign(name);
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(server.local_addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}

fn message(body: &DocBuf) -> Vec<u8> {
    let mut out = Vec::new();
    let mut message = begin_op_msg(&mut out, 1, 0, 0);
    message.bytes().extend_from_slice(body.as_bytes());
    message.finish(MAX_MESSAGE_BYTES).unwrap();
    out
}

fn receive(stream: &mut Stream) -> std::io::Result<DocBuf> {
    let mut bytes = Vec::new();
    let header = read_message(stream, &mut bytes, 1 << 30)
        .map_err(|error| std::io::Error::other(format!("{error:?}")))?
        .ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let message = OpMsg::parse(&header, &bytes).unwrap();
    Ok(DocBuf::from_bytes(message.body.to_vec()).unwrap())
}

fn run(stream: &mut Stream, body: DocBuf) -> std::io::Result<DocBuf> {
    run_on(stream, "test", body)
}

fn run_on(stream: &mut Stream, db: &str, mut body: DocBuf) -> std::io::Result<DocBuf> {
    body.append("$db", db);
    stream.write_all(&message(&body))?;
    stream.flush()?;
    receive(stream)
}

fn is_ok(reply: &DocBuf) -> bool {
    matches!(reply.as_raw().get("ok"), Some(ValueRef::Double(1.0)))
}

#[test]
fn large_and_small_messages_also_after_a_pause() {
    let authority = Authority::new();
    let folder = folder("plain");
    let server = serve(&authority, &folder, None);
    let mut client = connect(&server, &authority, None);
    assert!(is_ok(&run(&mut client, doc! { "ping": 1 }).unwrap()));
    // Long enough to be parked.
    std::thread::sleep(Duration::from_millis(400));
    let large = "x".repeat(5 << 20);
    let mut docs = ArrayBuf::new();
    docs.push(&doc! { "_id": 1, "x": &large });
    assert!(is_ok(&run(&mut client, doc! { "insert": "c", "documents": &docs }).unwrap()));
    let found = run(&mut client, doc! { "find": "c" }).unwrap();
    assert!(found.len_bytes() > 5 << 20);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn requests_in_one_record_are_all_answered() {
    let authority = Authority::new();
    let folder = folder("pipelined");
    let server = serve(&authority, &folder, None);
    let mut client = connect(&server, &authority, None);
    for pause in [0, 400] {
        std::thread::sleep(Duration::from_millis(pause));
        let ping = message(&doc! { "ping": 1, "$db": "test" });
        client.write_all(&ping.repeat(50)).unwrap();
        client.flush().unwrap();
        for _ in 0..50 {
            assert!(is_ok(&receive(&mut client).unwrap()));
        }
    }
    // One whose second half comes later.
    let ping = message(&doc! { "ping": 1, "$db": "test" });
    client.write_all(&ping[..20]).unwrap();
    client.flush().unwrap();
    std::thread::sleep(Duration::from_millis(400));
    client.write_all(&ping[20..]).unwrap();
    client.flush().unwrap();
    assert!(is_ok(&receive(&mut client).unwrap()));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Active connections that share threads.
#[test]
fn many_connections_at_once_are_all_answered() {
    let authority = Authority::new();
    let folder = folder("crowd");
    let server = serve(&authority, &folder, None);
    let count = 4 * std::thread::available_parallelism().unwrap().get() + 8;
    let (together, reached) = (std::sync::Barrier::new(count), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for number in 0..count {
            let (server, authority, together, reached) = (&server, &authority, &together, &reached);
            scope.spawn(move || {
                let mut client = connect(server, authority, None);
                together.wait();
                let since = Instant::now();
                while !reached.load(Ordering::Relaxed) {
                    reached.fetch_or(server.server().grouped() == count, Ordering::Relaxed);
                    assert!(is_ok(&run(&mut client, doc! { "ping": 1 }).unwrap()));
                    assert!(since.elapsed() < Duration::from_secs(60), "{} in groups", server.server().grouped());
                }
                let ping = message(&doc! { "ping": 1, "$db": "test" });
                client.write_all(&[&ping.repeat(20), &ping[..20]].concat()).unwrap();
                client.flush().unwrap();
                (0..20).for_each(|_| assert!(is_ok(&receive(&mut client).unwrap())));
                client.write_all(&ping[20..]).unwrap();
                client.flush().unwrap();
                assert!(is_ok(&receive(&mut client).unwrap()));
                let large = "x".repeat(200_000);
                let mut docs = ArrayBuf::new();
                docs.push(&doc! { "_id": number as i32, "x": &large });
                assert!(is_ok(&run(&mut client, doc! { "insert": "c", "documents": &docs }).unwrap()));
                let filter = doc! { "_id": number as i32 };
                let found = run(&mut client, doc! { "find": "c", "filter": &filter }).unwrap();
                assert!(found.len_bytes() > 200_000);
            });
        }
    });
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn client_certificates_are_asked_for_and_checked() {
    let (authority, other) = (Authority::new(), Authority::new());
    let folder = folder("clients");
    let works = |server: &Serving, own: Option<&Authority>| {
        run(&mut connect(server, &authority, own), doc! { "ping": 1 }).is_ok_and(|reply| is_ok(&reply))
    };
    let strict = serve(&authority, &folder, Some(true));
    assert!(works(&strict, Some(&authority)));
    assert!(!works(&strict, None) && !works(&strict, Some(&other)));
    let lenient = serve(&authority, &folder, Some(false));
    assert!(works(&lenient, Some(&authority)) && works(&lenient, None));
    assert!(!works(&lenient, Some(&other)));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn who_does_not_finish_a_handshake_holds_no_thread_and_is_cut_off() {
    let authority = Authority::new();
    let folder = folder("hostile");
    let server = serve(&authority, &folder, None);
    let began = Instant::now();
    let mut slow: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(server.local_addr()).unwrap()).collect();
    for stream in &mut slow {
        // The beginning of a record that never comes.
        stream.write_all(&[0x16, 0x03, 0x01, 0x01, 0x00]).unwrap();
    }
    std::thread::sleep(Duration::from_millis(500));
    let mut client = connect(&server, &authority, None);
    assert!(is_ok(&run(&mut client, doc! { "ping": 1 }).unwrap()));
    let mut plain = TcpStream::connect(server.local_addr()).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    plain.write_all(&message(&doc! { "ping": 1, "$db": "test" })).unwrap();
    let mut rest = Vec::new();
    // An alert at most, never an answer.
    let _ = plain.read_to_end(&mut rest);
    assert!(rest.len() < 16, "{rest:?}");
    for mut stream in slow {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert!(matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_)));
    }
    assert!(began.elapsed() < Duration::from_secs(15), "cut off after {:?}", began.elapsed());
    assert!(is_ok(&run(&mut client, doc! { "ping": 1 }).unwrap()));
    std::fs::remove_dir_all(folder).unwrap();
}

/// What each is answered was taken from MongoDB 6.0.5, which the driver tests also run against.
#[test]
fn a_certificate_is_a_login_for_the_user_it_names() {
    let authority = Authority::new();
    let folder = folder("x509");
    let tls = Some(files(&authority, &folder, Some(false)));
    let server = serve_with(Options { tls, auth: true, ..options() });
    let alice = "CN=al\\, ice,O=Bikes";
    let log_in = |user: Option<&str>| {
        let mut body = doc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
        user.into_iter().for_each(|user| {
            body.append("user", user);
        });
        body
    };
    let code = |reply: &DocBuf| match reply.as_raw().get("code") {
        Some(ValueRef::Int32(code)) => code,
        _ => 0,
    };
    // The first user is made from this machine, as ever; a certificate makes nobody anybody by itself.
    let mut root = connect_as(&server, &authority, Some((&authority, "root")));
    assert_eq!(code(&run_on(&mut root, "$external", log_in(None)).unwrap()), 11);
    assert_eq!(code(&run(&mut root, doc! { "find": "c" }).unwrap()), 13);
    let roles = |role: &str, db: &str| {
        let mut roles = ArrayBuf::new();
        roles.push(&doc! { "role": role, "db": db });
        roles
    };
    let create = doc! { "createUser": "CN=root,O=Bikes", "roles": &roles("root", "admin") };
    assert_eq!(code(&run_on(&mut root, "$external", create).unwrap()), 13);
    let create = doc! { "createUser": "first", "pwd": "x", "roles": &roles("root", "admin") };
    assert!(is_ok(&run_on(&mut root, "admin", create).unwrap()));
    let add = |name: &str, db: &str, role: &str| {
        let mut client = connect(&server, &authority, None);
        login_by(|body| run_on(&mut client, "admin", body).unwrap(), "first", "SCRAM-SHA-256", "x");
        let create = doc! { "createUser": name, "roles": &roles(role, db) };
        assert!(is_ok(&run_on(&mut client, "$external", create).unwrap()));
    };
    add("CN=root,O=Bikes", "admin", "root");
    add(alice, "test", "read");
    let done = run_on(&mut root, "$external", log_in(Some("CN=root,O=Bikes"))).unwrap();
    assert_eq!(done.as_raw().get_str("user"), Some("CN=root,O=Bikes"));
    assert_eq!(done.as_raw().get_str("dbname"), Some("$external"));
    assert!(is_ok(&run(&mut root, doc! { "find": "c" }).unwrap()));
    let mut client = connect_as(&server, &authority, Some((&authority, "al, ice")));
    for (db, body, expected) in [
        ("$external", log_in(Some("CN=root,O=Bikes")), 18),
        ("admin", log_in(None), 17),
        ("$external", doc! { "authenticate": 1 }, 40414),
        ("$external", doc! { "authenticate": 1, "mechanism": "MONGODB-CR" }, 334),
        ("$external", doc! { "authenticate": 1, "mechanism": "SCRAM-SHA-1" }, 2),
        ("$external", doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "x": 1 }, 40415),
        ("test", doc! { "find": "c" }, 13),
        ("$external", log_in(Some(alice)), 0),
        ("test", doc! { "find": "c" }, 0),
        ("test", doc! { "drop": "c" }, 13),
    ] {
        let reply = run_on(&mut client, db, body).unwrap();
        assert_eq!(code(&reply), expected, "{reply:?}");
    }
    // As drivers do it: within the handshake.
    let mut client = connect_as(&server, &authority, Some((&authority, "al, ice")));
    let speculative = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "db": "$external" };
    let hello = run_on(&mut client, "admin", doc! { "hello": 1, "speculativeAuthenticate": &speculative }).unwrap();
    let answer = hello.as_raw().get_doc("speculativeAuthenticate").unwrap();
    assert_eq!(answer.get_str("user"), Some(alice));
    assert!(is_ok(&run(&mut client, doc! { "find": "c" }).unwrap()));
    // Without a certificate there is no subject, and saying whose one would like to be does not help.
    let mut nobody = connect(&server, &authority, None);
    assert_eq!(code(&run_on(&mut nobody, "$external", log_in(Some(alice))).unwrap()), 18);
    assert_eq!(code(&run_on(&mut nobody, "$external", log_in(None)).unwrap()), 18);
    std::fs::remove_dir_all(folder).unwrap();
}
