//! Users over a real socket: logging in, and that being logged in is needed.
#![allow(clippy::unwrap_used)]

mod support;

use espalier_server::{Options, Serving};
use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};
use support::client::int;
use support::scram::{is_ok, login, payload, proof, roles, start};
use support::{Client, options, serve_with};

fn serve() -> Serving {
    serve_with(Options { auth: true, ..options() })
}

fn connect(server: &Serving) -> Client {
    Client::connect(server.local_addr())
}

/// A server with one user, and a connection on which it is logged in.
fn with_root() -> (Serving, Client) {
    let server = serve();
    let mut root = connect(&server);
    let reply = root.run_on("admin", doc! { "createUser": "root", "pwd": "geheim", "roles": &roles(&["root"]) });
    assert!(is_ok(&reply), "{reply:?}");
    assert!(is_ok(&login(&mut root, "admin", "root", "SCRAM-SHA-256", "geheim")));
    (server, root)
}

fn message(reply: &DocBuf) -> &str {
    reply.as_raw().get_str("errmsg").unwrap()
}

#[test]
fn the_first_user_is_created_from_here_and_only_the_first() {
    let server = serve();
    let mut client = connect(&server);
    let refused = client.run(doc! { "find": "c" });
    assert_eq!(int(&refused, "code"), 13);
    assert!(message(&refused).starts_with("not authorized on test to execute command { find: \"c\""), "{refused:?}");
    let elsewhere = client.run(doc! { "createUser": "u", "pwd": "geheim", "roles": &ArrayBuf::new() });
    assert_eq!(int(&elsewhere, "code"), 13);
    assert!(message(&elsewhere).contains("pwd: \"xxx\"") && !message(&elsewhere).contains("geheim"));
    let create = doc! { "createUser": "root", "pwd": "geheim", "roles": &roles(&["root"]) };
    assert!(is_ok(&client.run_on("admin", create)));
    let second = client.run_on("admin", doc! { "createUser": "x", "pwd": "x", "roles": &roles(&["root"]) });
    assert_eq!(int(&second, "code"), 13);
    assert_eq!(message(&second), "command createUser requires authentication");
    assert_eq!(client.code(doc! { "find": "c" }), 13);
    client.ok(doc! { "ping": 1 });
    assert!(is_ok(&login(&mut client, "admin", "root", "SCRAM-SHA-256", "geheim")));
    client.ok(doc! { "find": "c" });
    client.run_on("admin", doc! { "logout": 1 });
    assert_eq!(client.code(doc! { "find": "c" }), 13);
}

#[test]
fn both_mechanisms_log_in_and_nothing_else_does() {
    let (server, mut root) = with_root();
    root.ok(doc! { "createUser": "u", "pwd": "pencil", "roles": &roles(&["read"]) });
    // Old drivers digest the password first: md5("u:mongo:pencil").
    let digested = "a82b9dca15a32a80378f4ec1fb24506d";
    for (mechanism, secret) in [("SCRAM-SHA-256", "pencil"), ("SCRAM-SHA-1", digested)] {
        let mut client = connect(&server);
        assert!(is_ok(&login(&mut client, "test", "u", mechanism, secret)), "{mechanism}");
        client.ok(doc! { "find": "c" });
        assert_eq!(client.code(doc! { "insert": "c", "documents": &docs() }), 13);
        let mut wrong = connect(&server);
        let reply = login(&mut wrong, "test", "u", mechanism, "pencils");
        assert_eq!((int(&reply, "code"), message(&reply)), (18, "Authentication failed."));
        assert_eq!(wrong.code(doc! { "find": "c" }), 13);
        // The right password in the wrong database.
        assert_eq!(int(&login(&mut wrong, "admin", "u", mechanism, secret), "code"), 18);
    }
    let mut client = connect(&server);
    let reply =
        client.run(doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": ValueRef::Binary(0, b"\0u\0pencil") });
    assert_eq!(int(&reply, "code"), 334);
    let reply = client.run(doc! { "saslContinue": 1, "conversationId": 1, "payload": ValueRef::Binary(0, b"") });
    assert_eq!(int(&reply, "code"), 17);
}

fn docs() -> ArrayBuf {
    let mut docs = ArrayBuf::new();
    docs.push(&doc! { "a": 1 });
    docs
}

#[test]
fn a_user_that_does_not_exist_looks_like_one_with_another_password() {
    let (server, _root) = with_root();
    let mut client = connect(&server);
    let first = client.run_on("admin", start("SCRAM-SHA-256", "nobody"));
    let again = client.run_on("admin", start("SCRAM-SHA-256", "nobody"));
    let real = client.run_on("admin", start("SCRAM-SHA-256", "root"));
    let part = |reply: &DocBuf, at: usize| payload(reply).split(',').nth(at).unwrap().to_string();
    assert_eq!(part(&first, 1), part(&again, 1), "the salt does not change");
    assert_ne!(part(&first, 0), part(&again, 0), "the nonce does");
    assert_eq!((part(&real, 1).len(), part(&real, 2)), (part(&first, 1).len(), part(&first, 2)));
    let reply = login(&mut client, "admin", "nobody", "SCRAM-SHA-256", "geheim");
    assert_eq!((int(&reply, "code"), message(&reply)), (18, "Authentication failed."));
    let hello =
        |client: &mut Client, user: &str| client.run_on("admin", doc! { "hello": 1, "saslSupportedMechs": user });
    let mechanisms = |reply: &DocBuf| format!("{:?}", reply.as_raw().get("saslSupportedMechs"));
    let (known, unknown) = (hello(&mut client, "admin.root"), hello(&mut client, "admin.nobody"));
    assert_eq!(mechanisms(&known), mechanisms(&unknown));
}

#[test]
fn guessing_gets_slow() {
    let (server, _root) = with_root();
    let mut client = connect(&server);
    for _ in 0..7 {
        assert_eq!(int(&login(&mut client, "admin", "root", "SCRAM-SHA-256", "wrong"), "code"), 18);
    }
    // Even the right one is not looked at now.
    assert_eq!(int(&login(&mut client, "admin", "root", "SCRAM-SHA-256", "geheim"), "code"), 18);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(is_ok(&login(&mut client, "admin", "root", "SCRAM-SHA-256", "geheim")));
}

#[test]
fn hello_can_begin_the_login() {
    let (server, _root) = with_root();
    let mut client = connect(&server);
    let mut begin = start("SCRAM-SHA-256", "root");
    begin.append("db", "admin");
    let hello = client.run_on("admin", doc! { "hello": 1, "speculativeAuthenticate": &begin });
    let begun = DocBuf::from_raw(hello.as_raw().get_doc("speculativeAuthenticate").unwrap());
    let last = proof("SCRAM-SHA-256", "geheim", "n=root,r=fyko+d2lbbFgONRv9qkxdawL", &payload(&begun));
    let id = begun.as_raw().get("conversationId").unwrap();
    let go_on = doc! { "saslContinue": 1, "conversationId": id, "payload": ValueRef::Binary(0, last.as_bytes()) };
    let reply = client.run_on("admin", go_on);
    assert!(is_ok(&reply) && matches!(reply.as_raw().get("done"), Some(ValueRef::Bool(true))));
    client.ok(doc! { "find": "c" });
}

/// A driver that then goes by another mechanism would take the answer for one to that.
#[test]
fn hello_does_not_begin_a_login_by_a_mechanism_that_the_user_has_not() {
    let (server, mut root) = with_root();
    root.ok(doc! { "createUser": "old", "pwd": "x", "roles": &roles(&[]), "mechanisms": &roles(&["SCRAM-SHA-1"]) });
    let mut client = connect(&server);
    for (user, mechanism, begins) in
        [("old", "SCRAM-SHA-256", false), ("old", "SCRAM-SHA-1", true), ("nobody", "SCRAM-SHA-256", true)]
    {
        let mut begin = start(mechanism, user);
        begin.append("db", "test");
        let hello = client.run_on("admin", doc! { "hello": 1, "speculativeAuthenticate": &begin });
        assert_eq!(hello.as_raw().get("speculativeAuthenticate").is_some(), begins, "{user} {mechanism}");
    }
}

#[test]
fn an_older_driver_ends_with_an_empty_exchange() {
    let (server, _root) = with_root();
    let mut client = connect(&server);
    let text = b"n,,n=root,r=abc";
    let begun = client
        .run_on("admin", doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": ValueRef::Binary(0, text) });
    let last = proof("SCRAM-SHA-256", "geheim", "n=root,r=abc", &payload(&begun));
    let go_on =
        |payload: &[u8]| doc! { "saslContinue": 1, "conversationId": 1, "payload": ValueRef::Binary(0, payload) };
    let reply = client.run_on("admin", go_on(last.as_bytes()));
    assert!(is_ok(&reply) && matches!(reply.as_raw().get("done"), Some(ValueRef::Bool(false))));
    assert_eq!(client.code(doc! { "find": "c" }), 13, "not before the end");
    let reply = client.run_on("admin", go_on(b""));
    assert!(matches!(reply.as_raw().get("done"), Some(ValueRef::Bool(true))), "{reply:?}");
    client.ok(doc! { "find": "c" });
}

#[test]
fn changes_of_users_and_roles_are_in_force_at_once() {
    let (server, mut root) = with_root();
    root.ok(doc! { "createUser": "u", "pwd": "x", "roles": &roles(&["read"]) });
    let mut client = connect(&server);
    assert!(is_ok(&login(&mut client, "test", "u", "SCRAM-SHA-256", "x")));
    let insert = || doc! { "insert": "c", "documents": &docs() };
    assert_eq!(client.code(insert()), 13);
    root.ok(doc! { "grantRolesToUser": "u", "roles": &roles(&["readWrite"]) });
    client.ok(insert());
    root.ok(doc! { "revokeRolesFromUser": "u", "roles": &roles(&["readWrite"]) });
    assert_eq!(client.code(insert()), 13);
    let privilege = doc! { "resource": &doc! { "db": "test", "collection": "c" }, "actions": &roles(&["insert"]) };
    let mut privileges = ArrayBuf::new();
    privileges.push(&privilege);
    root.ok(doc! { "createRole": "writer", "privileges": &privileges, "roles": &ArrayBuf::new() });
    root.ok(doc! { "createRole": "outer", "privileges": &ArrayBuf::new(), "roles": &roles(&["writer"]) });
    root.ok(doc! { "grantRolesToUser": "u", "roles": &roles(&["outer"]) });
    client.ok(insert());
    assert_eq!(client.code(doc! { "insert": "d", "documents": &docs() }), 13);
    root.ok(doc! { "dropRole": "writer" });
    assert_eq!(client.code(insert()), 13);
    root.ok(doc! { "dropUser": "u" });
    let reply = client.run(doc! { "find": "c" });
    assert_eq!(message(&reply), "command find requires authentication");
    // One that was created again is another one.
    root.ok(doc! { "createUser": "u", "pwd": "x", "roles": &roles(&["read"]) });
    assert_eq!(client.code(doc! { "find": "c" }), 13);
}

#[test]
fn restrictions_on_addresses_hold() {
    let (server, mut root) = with_root();
    let restricted = |range: &str| {
        let mut list = ArrayBuf::new();
        list.push(&doc! { "clientSource": &roles(&[range]) });
        list
    };
    for (user, range, works) in [("near", "127.0.0.0/8", true), ("far", "10.0.0.0/8", false)] {
        root.ok(doc! {
            "createUser": user, "pwd": "x", "roles": &ArrayBuf::new(), "authenticationRestrictions": &restricted(range),
        });
        let reply = login(&mut connect(&server), "test", user, "SCRAM-SHA-256", "x");
        assert_eq!(is_ok(&reply), works, "{user}: {reply:?}");
    }
}

#[test]
fn cursors_and_operations_belong_to_who_opened_them() {
    let (server, mut root) = with_root();
    let mut docs = ArrayBuf::new();
    (0..10).for_each(|i| {
        docs.push(&doc! { "_id": i });
    });
    root.ok(doc! { "insert": "c", "documents": &docs });
    for user in ["a", "b"] {
        root.ok(doc! { "createUser": user, "pwd": "x", "roles": &roles(&["readWrite"]) });
    }
    let mut clients = ["a", "b"].map(|user| {
        let mut client = connect(&server);
        assert!(is_ok(&login(&mut client, "test", user, "SCRAM-SHA-256", "x")));
        client
    });
    let reply = clients[0].ok(doc! { "find": "c", "batchSize": 2 });
    let id = support::client::cursor_id(&reply);
    assert_eq!(clients[1].code(doc! { "getMore": id, "collection": "c" }), 13);
    let mut ids = ArrayBuf::new();
    ids.push(id);
    assert_eq!(clients[1].code(doc! { "killCursors": "c", "cursors": &ids }), 13);
    clients[0].ok(doc! { "getMore": id, "collection": "c", "batchSize": 2 });
    let reply = root.ok(doc! { "killCursors": "c", "cursors": &ids });
    assert!(format!("{reply:?}").contains(&format!("\"cursorsKilled\": Array([Int64({id})])")), "{reply:?}");
    let own = clients[1].run_on("admin", doc! { "currentOp": 1, "$ownOps": true, "$all": true });
    assert!(is_ok(&own) && !format!("{own:?}").contains("\"user\": String(\"a\")"), "{own:?}");
    assert_eq!(int(&clients[1].run_on("admin", doc! { "currentOp": 1, "$all": true }), "code"), 13);
}

#[test]
fn lists_show_what_one_may_see() {
    let (server, mut root) = with_root();
    for (db, collection) in [("test", "seen"), ("test", "hidden"), ("other", "c")] {
        root.run_on(db, doc! { "create": collection });
    }
    let mut privileges = ArrayBuf::new();
    privileges.push(&doc! { "resource": &doc! { "db": "test", "collection": "seen" }, "actions": &roles(&["find"]) });
    root.ok(doc! { "createRole": "one", "privileges": &privileges, "roles": &ArrayBuf::new() });
    root.ok(doc! { "createUser": "u", "pwd": "x", "roles": &roles(&["one"]) });
    let mut client = connect(&server);
    assert!(is_ok(&login(&mut client, "test", "u", "SCRAM-SHA-256", "x")));
    let databases = format!("{:?}", client.run_on("admin", doc! { "listDatabases": 1, "nameOnly": true }));
    assert!(databases.contains("test") && !databases.contains("other"), "{databases}");
    let all = client.run_on("admin", doc! { "listDatabases": 1, "authorizedDatabases": false });
    assert_eq!(int(&all, "code"), 13);
    assert_eq!(client.code(doc! { "listCollections": 1 }), 13);
    let own = client.ok(doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true });
    let own = format!("{own:?}");
    assert!(own.contains("seen") && !own.contains("hidden"), "{own}");
}

#[test]
fn secrets_are_shown_nowhere() {
    let server = serve_with(Options { auth: true, log_level: espalier_server::log::Level::Debug, ..options() });
    let mut root = connect(&server);
    let create = |user: &str| doc! { "createUser": user, "pwd": "geheim7", "roles": &roles(&["root"]) };
    assert!(is_ok(&root.run_on("admin", create("root"))));
    let secret = payload(&root.run_on("admin", start("SCRAM-SHA-256", "root")));
    assert!(is_ok(&login(&mut root, "admin", "root", "SCRAM-SHA-256", "geheim7")));
    root.run_on("admin", doc! { "updateUser": "root", "pwd": "geheim7", "nonsense": 1 });
    root.run_on("admin", doc! { "explain": &create("x") });
    root.run_on("admin", create("root"));
    let log = format!("{:?}", root.run_on("admin", doc! { "getLog": "global" }));
    assert!(log.contains("createUser") && log.contains("saslContinue"), "the log was to be looked at");
    let salt = secret.split(',').nth(1).unwrap();
    assert!(!log.contains("geheim7") && !log.contains(salt) && !log.contains("p="), "{log}");
    let (_, lines) = server.server().log.recent();
    assert!(!lines.join("\n").contains("geheim7"));
    let info = format!("{:?}", root.run_on("admin", doc! { "usersInfo": 1 }));
    assert!(!info.contains("storedKey") && !info.contains("geheim7"), "{info}");
    assert_eq!(int(&root.run_on("admin", doc! { "insert": "system.users", "documents": &docs() }), "code"), 73);
}
