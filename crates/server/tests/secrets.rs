//! No password, proof or key is in anything that the server writes or answers, however much it is asked to tell.
#![allow(clippy::unwrap_used)]

mod support;

use espalier_server::log::{Format, Level};
use espalier_server::{Options, Serving};
use espalier_value::{ArrayBuf, DocBuf, RawDoc, ValueRef, doc};
use support::scram::{is_ok, login, payload, proof, roles, start};
use support::{Client, options, serve_with};

const PASSWORD: &str = "korrekt-Pferd-Batterie";
const FIRST: &str = "n=ida,r=fyko+d2lbbFgONRv9qkxdawL";

/// Everything that must not be seen, as text and as the bytes of a payload.
struct Secrets(Vec<Vec<u8>>);

impl Secrets {
    fn add(&mut self, secret: &[u8]) {
        assert!(secret.len() >= 8, "too short to be told from anything else");
        self.0.push(secret.to_vec());
        // As a debug or JSON line would show bytes.
        let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.push(hex.into_bytes());
    }

    fn check(&self, what: &str, seen: &[u8]) {
        for secret in &self.0 {
            let found = seen.windows(secret.len()).any(|part| part.eq_ignore_ascii_case(secret));
            assert!(!found, "{what}: {} is in {}", String::from_utf8_lossy(secret), String::from_utf8_lossy(seen));
        }
    }
}

struct Watched {
    client: Client,
    secrets: Secrets,
}

impl Watched {
    /// Runs a command; whatever is answered must hold no secret.
    fn run(&mut self, db: &str, body: DocBuf) -> DocBuf {
        let name = body.as_raw().first().unwrap().name().to_string();
        let reply = self.client.run_on(db, body);
        self.secrets.check(&name, reply.as_bytes());
        reply
    }
}

fn new_server() -> Serving {
    let log = Options { auth: true, log_level: Level::Debug, log_format: Format::Json, ..options() };
    serve_with(log)
}

#[test]
fn nothing_that_is_written_or_answered_holds_a_secret() {
    let server = new_server();
    let mut client = Client::connect(server.local_addr());
    let create = |user: &str| doc! { "createUser": user, "pwd": PASSWORD, "roles": &roles(&["root"]) };
    assert!(is_ok(&client.run_on("admin", create("ida"))));
    assert!(is_ok(&login(&mut client, "admin", "ida", "SCRAM-SHA-256", PASSWORD)));
    let mut secrets = Secrets(Vec::new());
    secrets.add(PASSWORD.as_bytes());
    for db in ["admin", "test", "$external"] {
        client.run_on(db, doc! { "profile": 2, "slowms": -1 });
    }
    client.run_on("admin", doc! { "setParameter": 1, "logLevel": 5 });
    // What is stored of the password is a secret, too; who may see it and asks for it gets it, and nobody else.
    let stored = client.run_on("admin", doc! { "usersInfo": "ida", "showCredentials": true });
    let users = stored.as_raw().get("users").and_then(ValueRef::as_array).unwrap();
    let credentials = users.get(0).and_then(ValueRef::as_doc).unwrap().get_doc("credentials").unwrap();
    for mechanism in credentials {
        for key in ["storedKey", "serverKey", "salt"] {
            secrets.add(mechanism.value().as_doc().unwrap().get_str(key).unwrap().as_bytes());
        }
    }
    let mut watched = Watched { client, secrets };

    // Commands that carry a password: right, wrong, refused, explained, and by who may not.
    let array = |docs: &[DocBuf]| docs.iter().map(ValueRef::from).collect::<ArrayBuf>();
    let mut bodies = vec![create("otto"), create("otto"), create("")];
    bodies.push(doc! { "createUser": "x", "pwd": PASSWORD, "roles": "nonsense" });
    bodies.push(doc! { "createUser": "x", "pwd": PASSWORD, "roles": &roles(&["nonsense"]) });
    bodies.push(doc! { "createUser": "x", "pwd": PASSWORD, "roles": &roles(&[]), "nonsense": 1 });
    bodies.push(doc! { "createUser": "x", "pwd": PASSWORD, "roles": &roles(&[]), "mechanisms": &roles(&["nonsense"]) });
    bodies.push(doc! { "createUser": "x", "pwd": PASSWORD, "roles": &roles(&[]), "digestPassword": false });
    bodies.push(doc! { "createUser": 1, "pwd": PASSWORD });
    bodies.push(doc! { "createUser": "x", "pwd": &doc! { "nested": PASSWORD }, "roles": &roles(&[]) });
    bodies.push(doc! { "updateUser": "otto", "pwd": PASSWORD });
    bodies.push(doc! { "updateUser": "nobody", "pwd": PASSWORD });
    bodies.push(doc! { "updateUser": "otto", "pwd": PASSWORD, "nonsense": 1 });
    bodies.push(doc! { "explain": &create("y") });
    bodies.push(doc! { "explain": &doc! { "updateUser": "otto", "pwd": PASSWORD } });
    bodies.push(doc! { "explain": &doc! { "explain": &create("y") } });
    bodies
        .push(doc! { "authenticate": 1, "mechanism": "MONGODB-CR", "user": "ida", "key": PASSWORD, "nonce": PASSWORD });
    bodies.push(doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "user": "ida", "pwd": PASSWORD });
    bodies.push(doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": ValueRef::Binary(0, PASSWORD.as_bytes()) });
    bodies.push(doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-1", "payload": PASSWORD });
    let speculative = doc! {
        "saslStart": 1, "mechanism": "PLAIN", "payload": ValueRef::Binary(0, PASSWORD.as_bytes()), "db": "admin"
    };
    bodies.push(doc! { "hello": 1, "speculativeAuthenticate": &speculative });
    for db in ["admin", "test", "$external"] {
        for body in &bodies {
            watched.run(db, body.clone());
        }
    }
    let mut stranger = Watched { client: Client::connect(server.local_addr()), secrets: Secrets(Vec::new()) };
    stranger.secrets.add(PASSWORD.as_bytes());
    for body in &bodies {
        stranger.run("admin", body.clone());
    }

    // Logins, with the right proof and with a wrong one. The proof would do for who knows the nonces.
    for (mechanism, secret) in [("SCRAM-SHA-256", PASSWORD), ("SCRAM-SHA-1", PASSWORD), ("SCRAM-SHA-256", "wrong")] {
        let begun = stranger.run("admin", start(mechanism, "ida"));
        let last = proof(mechanism, secret, FIRST, &payload(&begun));
        watched.secrets.add(last.split_once("p=").unwrap().1.as_bytes());
        watched.secrets.add(last.as_bytes());
        let id = begun.as_raw().get("conversationId").unwrap();
        let go_on = doc! { "saslContinue": 1, "conversationId": id, "payload": ValueRef::Binary(0, last.as_bytes()) };
        stranger.run("admin", go_on);
    }
    watched.run("admin", doc! { "usersInfo": "ida", "showPrivileges": true });
    watched.run("test", doc! { "find": "c", "filter": &doc! { "a": 1 } });
    watched.run("test", doc! { "insert": "c", "documents": &array(&[doc! { "a": 1 }]) });

    // What was written of all that.
    let log = server.server().log.recent().1.join("\n");
    for command in ["createUser", "updateUser", "saslStart", "saslContinue", "authenticate", "hello", "explain"] {
        assert!(log.contains(&format!("\"{command}\"")), "{command} is not in the log: nothing was tested");
    }
    watched.secrets.check("the log", log.as_bytes());
    watched.run("admin", doc! { "getLog": "global" });
    let mut profiled = 0;
    for db in ["admin", "test"] {
        let reply = watched.run(db, doc! { "find": "system.profile", "batchSize": 100_000 });
        let cursor = reply.as_raw().get_doc("cursor").unwrap_or(RawDoc::EMPTY);
        profiled += cursor.get("firstBatch").and_then(ValueRef::as_array).map_or(0, |batch| batch.len());
    }
    assert!(profiled > 0);
    let all = doc! { "$currentOp": &doc! { "allUsers": true, "idleConnections": true, "idleCursors": true } };
    watched.run("admin", doc! { "aggregate": 1, "pipeline": &array(&[all]), "cursor": RawDoc::EMPTY });
    for body in [doc! { "currentOp": 1, "$all": true }, doc! { "serverStatus": 1 }, doc! { "top": 1 }] {
        assert!(is_ok(&watched.run("admin", body)));
    }
    for body in [doc! { "getDiagnosticData": 1 }, doc! { "getCmdLineOpts": 1 }, doc! { "getParameter": "*" }] {
        assert!(is_ok(&watched.run("admin", body)));
    }
}
