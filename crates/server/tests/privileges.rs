//! Every command of the registry asks for its privilege: nobody, a user that may do nothing, a user that may do just that.
#![allow(clippy::unwrap_used)]

mod support;

use espalier_server::commands::{Command, Place, Privilege, known};
use espalier_server::{Action, Options};
use espalier_value::{ArrayBuf, DocBuf, RawDoc, ValueRef, doc};
use support::client::int;
use support::scram::{is_ok, login, roles};
use support::{Client, options, serve_with};

/// What MongoDB answers without a login, tried on one that runs with `--auth`.
const PUBLIC: &[&str] = &[
    "authenticate",
    "buildInfo",
    "connectionStatus",
    "getLastError",
    "hello",
    "isMaster",
    "listCommands",
    "logout",
    "ping",
    "saslContinue",
    "saslStart",
    "whatsmyuri",
];

/// Any user may: for what is its own, or because nothing is told or changed.
const FOR_ANY_USER: &[&str] = &[
    "abortTransaction",
    "commitTransaction",
    "endSessions",
    "explain",
    "features",
    "getMore",
    "killCursors",
    "killOp",
    "killSessions",
    "listDatabases",
    "refreshSessions",
    "startSession",
];

fn array(docs: &[DocBuf]) -> ArrayBuf {
    let mut array = ArrayBuf::new();
    docs.iter().for_each(|doc| {
        array.push(doc);
    });
    array
}

fn grant(resource: DocBuf, actions: &[&str]) -> DocBuf {
    doc! { "resource": &resource, "actions": &roles(actions) }
}

fn on(collection: &str, actions: &[&str]) -> DocBuf {
    grant(doc! { "db": "test", "collection": collection }, actions)
}

fn on_admin(actions: &[&str]) -> DocBuf {
    grant(doc! { "db": "admin", "collection": "" }, actions)
}

/// For commands whose privilege depends on the request: a request, and what is just enough for it.
fn asked(command: &str) -> Option<(DocBuf, Vec<DocBuf>)> {
    let list = roles(&["read"]);
    let some = array(&[on("c", &["find"])]);
    let none = ArrayBuf::new();
    let cursor = RawDoc::EMPTY;
    Some(match command {
        "aggregate" => {
            let stages = array(&[
                doc! { "$lookup": &doc! { "from": "d", "pipeline": &ArrayBuf::new(), "as": "x" } },
                doc! { "$unionWith": "e" },
                doc! { "$facet": &doc! { "f": &array(&[doc! { "$unionWith": &doc! { "coll": "g" } }]) } },
                doc! { "$out": "o" },
            ]);
            let request = doc! { "aggregate": "c", "pipeline": &stages, "cursor": cursor };
            let read = ["c", "d", "e", "g"].map(|name| on(name, &["find"]));
            (request, read.into_iter().chain([on("o", &["insert", "remove"])]).collect())
        }
        "collMod" => (doc! { "collMod": "c" }, vec![on("c", &["collMod"])]),
        "create" => (
            doc! { "create": "c", "viewOn": "d", "pipeline": &none },
            vec![on("c", &["createCollection"]), on("d", &["find"])],
        ),
        "createRole" => (
            doc! { "createRole": "made", "privileges": &some, "roles": &none },
            vec![on("", &["createRole", "grantRole"])],
        ),
        "createUser" => {
            (doc! { "createUser": "made", "pwd": "x", "roles": &list }, vec![on("", &["createUser", "grantRole"])])
        }
        "currentOp" => (doc! { "currentOp": 1 }, vec![grant(doc! { "cluster": true }, &["inprog"])]),
        "dataSize" => (doc! { "dataSize": "test.c" }, vec![on("c", &["find"])]),
        "findAndModify" => {
            let update = doc! { "$set": &doc! { "a": 1 } };
            (
                doc! { "findAndModify": "c", "update": &update, "upsert": true },
                vec![on("c", &["find", "update", "insert"])],
            )
        }
        "grantPrivilegesToRole" => {
            (doc! { "grantPrivilegesToRole": "r", "privileges": &some }, vec![on("", &["grantRole"])])
        }
        "grantRolesToRole" => (doc! { "grantRolesToRole": "r", "roles": &list }, vec![on("", &["grantRole"])]),
        "grantRolesToUser" => (doc! { "grantRolesToUser": "u", "roles": &list }, vec![on("", &["grantRole"])]),
        "insert" => (doc! { "insert": "c", "documents": &array(&[doc! { "a": 1 }]) }, vec![on("c", &["insert"])]),
        "listCollections" => (doc! { "listCollections": 1 }, vec![on("", &["listCollections"])]),
        "profile" => (doc! { "profile": 0 }, vec![on("", &["enableProfiler"])]),
        "renameCollection" => {
            (doc! { "renameCollection": "test.c", "to": "test.d" }, vec![on("", &["renameCollectionSameDB"])])
        }
        "revokePrivilegesFromRole" => {
            (doc! { "revokePrivilegesFromRole": "r", "privileges": &some }, vec![on("", &["revokeRole"])])
        }
        "revokeRolesFromRole" => (doc! { "revokeRolesFromRole": "r", "roles": &list }, vec![on("", &["revokeRole"])]),
        "revokeRolesFromUser" => (doc! { "revokeRolesFromUser": "u", "roles": &list }, vec![on("", &["revokeRole"])]),
        "rolesInfo" => (doc! { "rolesInfo": 1 }, vec![on("", &["viewRole"])]),
        "update" => {
            let update = doc! { "q": RawDoc::EMPTY, "u": &doc! { "$set": &doc! { "a": 1 } }, "upsert": true };
            (doc! { "update": "c", "updates": &array(&[update]) }, vec![on("c", &["update", "insert"])])
        }
        "updateRole" => (
            doc! { "updateRole": "r", "roles": &none },
            vec![grant(doc! { "db": "", "collection": "" }, &["revokeRole"])],
        ),
        "updateUser" => (doc! { "updateUser": "u", "pwd": "x" }, vec![on("", &["changePassword"])]),
        "usersInfo" => (doc! { "usersInfo": 1 }, vec![on("", &["viewUser"])]),
        _ => return None,
    })
}

/// A request for a command, on which database, and the privileges that are just enough.
fn request(command: &Command) -> (DocBuf, &'static str, Vec<DocBuf>) {
    let db = if command.place == Place::Admin { "admin" } else { "test" };
    let names = |actions: &[Action]| actions.iter().map(|action| action.name()).collect::<Vec<_>>();
    let mut plain = DocBuf::new();
    match command.privilege {
        Privilege::Collection(actions) => (plain.append(command.name, "c").clone(), db, vec![on("c", &names(actions))]),
        Privilege::Database(actions) => {
            let names = names(actions);
            let grants = if db == "admin" { on_admin(&names) } else { on("", &names) };
            (plain.append(command.name, 1).clone(), db, vec![grants])
        }
        Privilege::Cluster(actions) => {
            let grants = grant(doc! { "cluster": true }, &names(actions));
            (plain.append(command.name, 1).clone(), db, vec![grants])
        }
        _ => match asked(command.name) {
            Some((request, grants)) => (request, db, grants),
            None => (plain.append(command.name, 1).clone(), db, Vec::new()),
        },
    }
}

#[test]
fn every_command_asks_for_its_privilege() {
    let server = serve_with(Options { auth: true, ..options() });
    let connect = || Client::connect(server.local_addr());
    let mut root = connect();
    assert!(is_ok(&root.run_on("admin", doc! { "createUser": "root", "pwd": "x", "roles": &roles(&["root"]) })));
    assert!(is_ok(&login(&mut root, "admin", "root", "SCRAM-SHA-256", "x")));
    // In a database that no request of the table empties of its users.
    root.run_on("people", doc! { "createUser": "nobody", "pwd": "x", "roles": &ArrayBuf::new() });
    let mut nobody = connect();
    assert!(is_ok(&login(&mut nobody, "people", "nobody", "SCRAM-SHA-256", "x")));
    let mut stranger = connect();
    let mut some = connect();
    let mut seen = 0;
    for command in known() {
        let name = command.name;
        let (body, db, grants) = request(command);
        let answer = |client: &mut Client| {
            let reply = client.run_on(db, body.clone());
            let code = match reply.as_raw().get("code") {
                Some(ValueRef::Int32(code)) => code,
                _ => 0,
            };
            (code, reply.as_raw().get_str("errmsg").unwrap_or_default().to_string())
        };
        let public = matches!(command.privilege, Privilege::Public);
        assert_eq!(public, PUBLIC.contains(&name), "{name}: may anyone, or not?");
        let (code, message) = answer(&mut stranger);
        if public {
            assert_ne!(code, 13, "{name}: {message}");
            continue;
        }
        assert_eq!((code, message), (13, format!("command {name} requires authentication")), "{name}");
        let any = matches!(command.privilege, Privilege::Authenticated) || FOR_ANY_USER.contains(&name);
        let (code, message) = answer(&mut nobody);
        if any {
            assert_ne!(code, 13, "{name}: {message}");
            continue;
        }
        assert_eq!(code, 13, "{name}: {message}");
        let expected = format!("not authorized on {db} to execute command {{ {name}: ");
        assert!(message.starts_with(&expected), "{name}: {message}");
        assert!(!grants.is_empty(), "{name}: what is enough for it is not in the table of this test");
        // One privilege less is not enough; all of them are.
        for without in (0..grants.len()).map(Some).chain([None]) {
            let given: Vec<DocBuf> =
                grants.iter().enumerate().filter(|(at, _)| Some(*at) != without).map(|(_, doc)| doc.clone()).collect();
            let make = doc! { "createRole": "just", "privileges": &array(&given), "roles": &ArrayBuf::new() };
            assert!(is_ok(&root.run_on("admin", make)), "{name}: {given:?}");
            let user = doc! { "createUser": "just", "pwd": "x", "roles": &roles(&["just"]) };
            assert!(is_ok(&root.run_on("admin", user)));
            assert!(is_ok(&login(&mut some, "admin", "just", "SCRAM-SHA-256", "x")));
            // It would end the server, which is what `shutdown` is tested for elsewhere.
            if name == "shutdown" && without.is_none() {
                continue;
            }
            let (code, message) = answer(&mut some);
            assert_eq!(code == 13, without.is_some(), "{name} without {without:?}: {code} {message}");
            root.run_on("admin", doc! { "dropUser": "just" });
            root.run_on("admin", doc! { "dropRole": "just" });
            if name == "fsync" && without.is_none() {
                root.run_on("admin", doc! { "fsyncUnlock": 1 });
            }
        }
        seen += 1;
        if name == "shutdown" {
            root.run_on("admin", doc! { "dropUser": "just" });
            root.run_on("admin", doc! { "dropRole": "just" });
        }
    }
    assert!(seen > 40, "only {seen} commands were looked at");
    let open = root.run_on("admin", doc! { "find": "system.users" });
    assert!(is_ok(&open), "{}", int(&open, "code"));
}
