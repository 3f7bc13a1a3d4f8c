//! What the server tells about itself: the profiler, the log of slow commands, `top`, `currentOp`, `serverStatus`, server
//! parameters, and the metrics page.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use espalier_server::Options;
use espalier_value::number::Number;
use espalier_value::{ArrayBuf, DocBuf, RawDoc, ValueRef, doc};
use support::client::{batch, cursor_id, int};
use support::{Client, options, serve, serve_with};

fn array<'a>(docs: impl IntoIterator<Item = &'a DocBuf>) -> ArrayBuf {
    docs.into_iter().map(|doc| ValueRef::Document(doc.as_raw())).collect()
}

fn fill(client: &mut Client, count: i32) {
    let docs: Vec<DocBuf> = (0..count).map(|i| doc! { "_id": i, "a": i % 10 }).collect();
    client.ok(doc! { "insert": "c", "documents": &array(&docs) });
}

fn number(doc: RawDoc<'_>, path: &str) -> i64 {
    let mut value = ValueRef::Document(doc);
    for part in path.split('.') {
        value = value.as_doc().and_then(|doc| doc.get(part)).unwrap_or_else(|| panic!("no {path} in {doc:?}"));
    }
    Number::of(value).unwrap_or_else(|| panic!("{path} is {value:?}")).to_i64_clamped()
}

fn profiled(client: &mut Client, filter: DocBuf) -> Vec<DocBuf> {
    let reply = client.ok(doc! { "find": "system.profile", "filter": &filter, "batchSize": 1000 });
    batch(&reply).into_iter().map(DocBuf::from_raw).collect()
}

#[test]
fn the_profiler_writes_down_what_was_done() {
    let serving = serve();
    let mut client = Client::connect(serving.local_addr());
    fill(&mut client, 100);
    assert_eq!(int(&client.ok(doc! { "profile": 2 }), "was"), 0);
    let find = client.ok(doc! { "find": "c", "filter": &doc! { "a": 3 }, "batchSize": 4 });
    client.ok(doc! { "getMore": cursor_id(&find), "collection": "c" });
    let one = doc! { "q": &doc! { "_id": 3 }, "u": &doc! { "$set": &doc! { "b": 1 } } };
    let other = doc! { "q": &doc! { "_id": -1 }, "u": &doc! { "$set": &doc! { "b": 1 } }, "upsert": true };
    client.ok(doc! { "update": "c", "updates": &array([&one, &other]) });
    client.ok(doc! { "delete": "c", "deletes": &array([&doc! { "q": &doc! { "a": 9 }, "limit": 0 }]) });
    client.code(doc! { "find": "c", "filter": &doc! { "$bad": 1 } });
    let group = doc! { "$group": &doc! { "_id": "$a" } };
    client.ok(doc! { "aggregate": "c", "pipeline": &array([&group]), "cursor": RawDoc::EMPTY });
    client.ok(doc! { "ping": 1 });
    assert_eq!(client.code(doc! { "drop": "system.profile" }), 20);
    assert_eq!(int(&client.ok(doc! { "profile": 0 }), "was"), 2);

    let query = &profiled(&mut client, doc! { "op": "query", "nreturned": 4 })[0];
    let raw = query.as_raw();
    assert_eq!(raw.get_str("ns"), Some("test.c"));
    assert_eq!(raw.get_str("planSummary"), Some("COLLSCAN"));
    assert_eq!(raw.get_doc("command").unwrap().get_str("find"), Some("c"));
    let examined = number(raw, "docsExamined");
    assert!((34..100).contains(&examined), "{query:?}");
    assert!(number(raw, "responseLength") > 100 && number(raw, "millis") >= 0);
    assert!(raw.get("ts").is_some() && raw.get_str("client") == Some("127.0.0.1"));
    let more = &profiled(&mut client, doc! { "op": "getmore" })[0];
    assert_eq!(number(more.as_raw(), "nreturned"), 6);
    // Together they have seen each document once.
    assert_eq!(examined + number(more.as_raw(), "docsExamined"), 100);
    assert_eq!(more.as_raw().get_doc("originatingCommand").unwrap().get_str("find"), Some("c"));

    let updates = profiled(&mut client, doc! { "op": "update" });
    assert_eq!(updates.len(), 2, "{updates:?}");
    assert_eq!(number(updates[0].as_raw(), "nModified"), 1);
    assert_eq!(number(updates[0].as_raw(), "command.q._id"), 3);
    assert_eq!(number(updates[0].as_raw(), "docsExamined"), 1);
    assert_eq!(number(updates[1].as_raw(), "nUpserted"), 1);
    let removed = &profiled(&mut client, doc! { "op": "remove" })[0];
    assert_eq!(number(removed.as_raw(), "ndeleted"), 10);
    let failed = &profiled(&mut client, doc! { "errCode": 2 })[0];
    assert_eq!(failed.as_raw().get_str("errName"), Some("BadValue"));
    let grouped = &profiled(&mut client, doc! { "command.aggregate": "c" })[0];
    assert_eq!(number(grouped.as_raw(), "docsExamined"), 91);
    assert!(profiled(&mut client, doc! { "command.ping": 1 }).is_empty());
    let stats = client.ok(doc! { "collStats": "system.profile" });
    assert!(matches!(stats.as_raw().get("capped"), Some(ValueRef::Bool(true))));
    client.ok(doc! { "drop": "system.profile" });
}

#[test]
fn the_profiler_chooses_by_time_and_by_filter() {
    let serving = serve();
    let mut client = Client::connect(serving.local_addr());
    fill(&mut client, 10);
    client.ok(doc! { "profile": 1, "slowms": 100_000 });
    client.ok(doc! { "find": "c" });
    assert!(profiled(&mut client, doc! {}).is_empty());
    client.ok(doc! { "profile": 1, "slowms": 0 });
    client.ok(doc! { "find": "c" });
    assert!(!profiled(&mut client, doc! { "ns": "test.c" }).is_empty());
    client.ok(doc! { "profile": 1, "slowms": 0, "sampleRate": 0.0 });
    client.ok(doc! { "find": "c", "comment": "unlucky" });
    assert!(profiled(&mut client, doc! { "command.comment": "unlucky" }).is_empty());
    client.ok(doc! { "profile": 1, "filter": &doc! { "nreturned": 3 } });
    client.ok(doc! { "find": "c", "limit": 3, "comment": "wanted" });
    client.ok(doc! { "find": "c", "limit": 4, "comment": "unwanted" });
    assert_eq!(profiled(&mut client, doc! { "command.comment": "wanted" }).len(), 1);
    assert!(profiled(&mut client, doc! { "command.comment": "unwanted" }).is_empty());
    let shown = client.ok(doc! { "profile": -1 });
    assert_eq!(number(shown.as_raw(), "filter.nreturned"), 3);
    client.ok(doc! { "profile": 0, "filter": "unset" });
    assert!(client.ok(doc! { "profile": -1 }).as_raw().get("filter").is_none());
    // Another database goes its own way.
    assert_eq!(int(&client.run_on("other", doc! { "profile": -1 }), "was"), 0);
}

#[test]
fn slow_commands_are_logged_with_their_plan_and_waiting_is_not_slow() {
    let serving = serve_with(Options { log_level: espalier_server::log::Level::Info, ..options() });
    let mut client = Client::connect(serving.local_addr());
    let lines = || serving.server().log.recent().1;
    client.ok(doc! { "create": "capped", "capped": true, "size": 4096 });
    client.ok(doc! { "insert": "capped", "documents": &array([&doc! { "_id": 1 }]) });
    let tail = client.ok(doc! { "find": "capped", "tailable": true, "awaitData": true });
    let begun = Instant::now();
    client.ok(doc! { "getMore": cursor_id(&tail), "collection": "capped", "maxTimeMS": 400 });
    assert!(begun.elapsed() >= Duration::from_millis(400));
    let waited = |line: &String| line.contains("getMore") && line.contains("Slow query");
    assert!(!lines().iter().any(waited), "{:?}", lines());
    fill(&mut client, 50);
    client.ok(doc! { "profile": 0, "slowms": 0 });
    client.ok(doc! { "find": "c", "filter": &doc! { "a": 1 } });
    let slow = lines().into_iter().find(|line| line.contains("Slow query") && line.contains("test.c")).unwrap();
    for part in [
        r#""planSummary":"COLLSCAN""#,
        r#""docsExamined":"50""#,
        r#""keysExamined":"0""#,
        r#""nreturned":"5""#,
        "durationMillis",
        "remote",
    ] {
        assert!(slow.contains(part), "{part} is not in {slow}");
    }
}

#[test]
fn secrets_are_in_no_log_profile_or_list() {
    let serving = serve_with(Options { log_level: espalier_server::log::Level::Error, ..options() });
    let mut client = Client::connect(serving.local_addr());
    client.ok(doc! { "profile": 2, "slowms": 0 });
    client.run_on("admin", doc! { "setParameter": 1, "logLevel": 1 });
    client.run(doc! { "createUser": "bob", "pwd": "hunter2-secret", "roles": &ArrayBuf::new() });
    client.run(doc! { "createUser": "bob", "pwd": "hunter2-secret", "roles": "nonsense" });
    client.run(doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": ValueRef::Binary(0, b"hunter2-secret") });
    let seen = format!("{:?} {:?}", serving.server().log.recent(), profiled(&mut client, doc! {}));
    assert!(seen.contains("createUser"));
    assert!(!seen.contains("hunter2"), "{seen}");
}

#[test]
fn top_and_server_status_count_what_happened() {
    let serving = serve();
    let mut client = Client::connect(serving.local_addr());
    let status = |client: &mut Client| client.ok(doc! { "serverStatus": 1 });
    client.ok(doc! { "create": "c" });
    let before = status(&mut client);
    fill(&mut client, 30);
    for _ in 0..3 {
        client.ok(doc! { "find": "c", "filter": &doc! { "a": 1 }, "sort": &doc! { "a": -1 } });
    }
    client.ok(doc! { "find": "c", "filter": &doc! { "_id": 1 } });
    client.code(doc! { "find": "c", "filter": &doc! { "$bad": 1 } });
    client.ok(doc! { "delete": "c", "deletes": &array([&doc! { "q": &doc! { "_id": 1 }, "limit": 1 }]) });
    let after = status(&mut client);
    let grown = |path: &str| number(after.as_raw(), path) - number(before.as_raw(), path);
    assert_eq!(grown("opcounters.insert"), 30);
    assert_eq!(grown("opcounters.query"), 4, "one was refused before it began");
    assert_eq!(grown("opcounters.delete"), 1);
    assert_eq!(grown("opcounters.command"), 1, "only the first serverStatus");
    assert_eq!(grown("metrics.document.inserted"), 30);
    assert_eq!(grown("metrics.document.deleted"), 1);
    assert_eq!(grown("metrics.document.returned"), 3 * 3 + 1);
    assert_eq!(grown("metrics.queryExecutor.scannedObjects"), 3 * 30 + 2);
    assert_eq!(grown("metrics.queryExecutor.scanned"), 2);
    assert_eq!(grown("metrics.queryExecutor.collectionScans.total"), 3);
    assert_eq!(grown("metrics.operation.scanAndOrder"), 3);
    assert_eq!(grown("metrics.commands.find.total"), 5);
    assert_eq!(grown("metrics.commands.find.failed"), 1);
    assert_eq!(grown("asserts.user"), 1);
    assert_eq!(grown("opLatencies.reads.ops"), 5);
    assert_eq!(grown("opLatencies.writes.ops"), 2);
    assert!(grown("opLatencies.reads.latency") > 0 && grown("network.bytesOut") > 0);
    for section in ["connections", "mem", "globalLock", "repl", "storageEngine", "transactions", "extra_info", "locks"]
    {
        assert!(after.as_raw().get_doc(section).is_some(), "{section}");
    }
    let with_histograms = client.ok(doc! { "serverStatus": 1, "opLatencies": &doc! { "histograms": true } });
    let latencies = with_histograms.as_raw().get_doc("opLatencies").unwrap();
    let buckets = latencies.get_doc("writes").unwrap().get("histogram").and_then(ValueRef::as_array).unwrap();
    let counted: i64 = buckets.iter().map(|bucket| number(bucket.as_doc().unwrap(), "count")).sum();
    assert_eq!(counted, number(latencies, "writes.ops"));
    let data = client.run_on("admin", doc! { "getDiagnosticData": 1 });
    let data = data.as_raw().get_doc("data").unwrap();
    assert_eq!(number(data, "serverStatus.opcounters.insert"), number(after.as_raw(), "opcounters.insert"));
    assert_eq!(number(data, "replSetGetStatus.myState"), 1);
    assert!(number(data, "systemMetrics.memory.MemTotal_kb") > 0);
    let less = client.ok(doc! { "serverStatus": 1, "metrics": 0, "repl": false });
    assert!(less.as_raw().get("metrics").is_none() && less.as_raw().get("mem").is_some());

    let top = client.run_on("admin", doc! { "top": 1 });
    let usage = top.as_raw().get_doc("totals").unwrap().get_doc("test.c").unwrap();
    for (path, count) in [
        ("queries.count", 5),
        ("insert.count", 1),
        ("remove.count", 1),
        ("update.count", 0),
        ("readLock.count", 5),
        ("writeLock.count", 2),
        ("commands.count", 1),
        ("total.count", 8),
    ] {
        assert_eq!(number(usage, path), count, "{path} in {usage:?}");
    }
    assert!(number(usage, "queries.time") > 0);
    let stats = doc! { "$collStats": &doc! { "latencyStats": RawDoc::EMPTY, "queryExecStats": RawDoc::EMPTY } };
    let reply = client.ok(doc! { "aggregate": "c", "pipeline": &array([&stats]), "cursor": RawDoc::EMPTY });
    assert_eq!(number(batch(&reply)[0], "latencyStats.reads.ops"), 5);
    assert_eq!(number(batch(&reply)[0], "queryExecStats.collectionScans.total"), 3);
    client.ok(doc! { "drop": "c" });
    client.ok(doc! { "create": "c" });
    let top = client.run_on("admin", doc! { "top": 1 });
    let usage = top.as_raw().get_doc("totals").unwrap().get_doc("test.c").unwrap();
    assert_eq!(number(usage, "queries.count"), 0);
}

#[test]
fn current_op_shows_who_waits_and_kill_op_ends_it() {
    let serving = serve();
    let address = serving.local_addr();
    let mut client = Client::connect(address);
    client.ok(doc! { "create": "capped", "capped": true, "size": 4096 });
    client.ok(doc! { "insert": "capped", "documents": &array([&doc! { "_id": 1 }]) });
    let waiting = thread::spawn(move || {
        let mut client = Client::connect(address);
        let tail = client.ok(doc! { "find": "capped", "tailable": true, "awaitData": true });
        client.code(doc! { "getMore": cursor_id(&tail), "collection": "capped", "maxTimeMS": 20_000 })
    });
    let mut opid = None;
    for _ in 0..250 {
        thread::sleep(Duration::from_millis(20));
        let reply = client.run_on("admin", doc! { "currentOp": 1, "op": "getmore", "waitingForLock": true });
        let found = reply.as_raw().get("inprog").and_then(ValueRef::as_array).unwrap();
        if let Some(ValueRef::Document(operation)) = found.get(0) {
            assert_eq!(operation.get_str("ns"), Some("test.capped"));
            assert_eq!(operation.get_str("planSummary"), Some("COLLSCAN"));
            opid = Some(number(operation, "opid"));
            break;
        }
    }
    client.run_on("admin", doc! { "killOp": 1, "op": opid.unwrap() });
    assert_eq!(waiting.join().unwrap(), 11601);
}

#[test]
fn parameters_take_effect_or_are_refused() {
    let serving = serve();
    let mut client = Client::connect(serving.local_addr());
    let mut set = |command: DocBuf| client.run_on("admin", command);
    let reply = set(doc! { "setParameter": 1, "cursorTimeoutMillis": 300 });
    assert_eq!(number(reply.as_raw(), "was"), 600_000);
    assert_eq!(number(set(doc! { "getParameter": 1, "cursorTimeoutMillis": 1 }).as_raw(), "cursorTimeoutMillis"), 300);
    for refused in [
        doc! { "setParameter": 1, "notablescan": true },
        doc! { "setParameter": 1, "journalCommitInterval": 5 },
        doc! { "setParameter": 1, "somethingElse": 5 },
        doc! { "setParameter": 1, "maxBSONDepth": 5 },
        doc! { "setParameter": 1, "ttlMonitorSleepSecs": 0 },
        doc! { "setParameter": 1, "ttlMonitorSleepSecs": "often" },
        // The first is fine, and is not set either.
        doc! { "setParameter": 1, "ttlMonitorSleepSecs": 5, "logLevel": 9 },
    ] {
        let reply = set(refused.clone());
        assert_eq!(number(reply.as_raw(), "ok"), 0, "{refused:?}");
    }
    let shown = set(doc! { "getParameter": 1, "ttlMonitorSleepSecs": 1 });
    assert_eq!(number(shown.as_raw(), "ttlMonitorSleepSecs"), 60);
    fill(&mut client, 10);
    let cursor = cursor_id(&client.ok(doc! { "find": "c", "batchSize": 2 }));
    thread::sleep(Duration::from_millis(1_500));
    assert_eq!(client.code(doc! { "getMore": cursor, "collection": "c" }), 43);
}

fn http(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // It may hang up in the middle of something that is far too long.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn metrics_are_there_for_prometheus_and_documented() {
    let serving = serve_with(Options { metrics: Some("127.0.0.1:0".into()), ..options() });
    let mut client = Client::connect(serving.local_addr());
    fill(&mut client, 20);
    client.ok(doc! { "find": "c", "batchSize": 2 });
    let address = serving.server().metrics_addr().unwrap();
    let answer = http(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", page.len())));
    for line in [
        "espalier_commands_total{command=\"find\"} 1",
        "espalier_documents_total{what=\"inserted\"} 20",
        "espalier_cursors 1",
        "espalier_connections 1",
        "espalier_operation_seconds_count{class=\"reads\"} 1",
        "espalier_operation_seconds_bucket{class=\"reads\",le=\"+Inf\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    let documented = include_str!("../../../docs/observability.md");
    let mut described = std::collections::HashSet::new();
    for line in page.lines() {
        let name = match line.strip_prefix("# HELP ") {
            Some(help) => {
                let name = help.split(' ').next().unwrap();
                assert!(described.insert(name), "{name} is described twice");
                name
            }
            None if line.starts_with('#') => continue,
            None => {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                let name = name.split('{').next().unwrap();
                let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                base.filter(|base| described.contains(base)).unwrap_or(name)
            }
        };
        assert!(described.contains(name), "{name} is not described");
        assert!(documented.contains(&format!("`{name}`")), "{name} is not in docs/observability.md");
    }
}

#[test]
fn hostile_web_clients_are_harmless() {
    let serving = serve_with(Options { metrics: Some("127.0.0.1:0".into()), ..options() });
    let address = serving.server().metrics_addr().unwrap();
    assert!(http(address, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(http(address, b"GET /secret HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(http(address, b"\xff\xfe nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert!(http(address, &[b'a'; 100_000]).len() < 1_000);
    let head = http(address, b"HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"));
    // More silent ones than there are places: they are cut off, and the next one is answered.
    let _silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
    let answered = (0..40).any(|_| {
        thread::sleep(Duration::from_millis(250));
        http(address, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200")
    });
    assert!(answered);
    Client::connect(serving.local_addr()).ok(doc! { "ping": 1 });
}

#[test]
fn transactions_are_timed_and_every_end_is_counted() {
    let serving = serve();
    let mut client = Client::connect(serving.local_addr());
    let mut other = Client::connect(serving.local_addr());
    fill(&mut client, 3);
    let before = client.ok(doc! { "serverStatus": 1 });
    let update = |session: u8, number: i64, starts: bool| {
        let update = doc! { "q": &doc! { "_id": 1 }, "u": &doc! { "$inc": &doc! { "n": 1 } } };
        let lsid = doc! { "id": ValueRef::Binary(4, &[session; 16]) };
        let mut body = doc! { "update": "c", "updates": &array([&update]), "lsid": &lsid, "txnNumber": number };
        body.append("autocommit", false);
        if starts {
            body.append("startTransaction", true);
        }
        body
    };
    let end = |name: &str, session: u8, number: i64| {
        let lsid = doc! { "id": ValueRef::Binary(4, &[session; 16]) };
        let mut body = DocBuf::new();
        body.append(name, 1).append("lsid", &lsid).append("txnNumber", number).append("autocommit", false);
        body
    };
    client.ok(update(1, 1, true));
    assert_eq!(other.code(update(2, 1, true)), 112);
    std::thread::sleep(Duration::from_millis(30));
    let commit = client.run_on("admin", end("commitTransaction", 1, 1));
    assert!(matches!(commit.as_raw().get("ok"), Some(ValueRef::Double(1.0))), "{commit:?}");
    client.ok(update(1, 2, true));
    client.run_on("admin", end("abortTransaction", 1, 2));
    // Left behind for a newer one, which ends with its session.
    client.ok(update(1, 3, true));
    client.ok(update(1, 4, true));
    client.ok(doc! { "endSessions": &array([&doc! { "id": ValueRef::Binary(4, &[1; 16]) }]) });
    let after = client.ok(doc! { "serverStatus": 1 });
    let grown = |path: &str| number(after.as_raw(), path) - number(before.as_raw(), path);
    assert_eq!(grown("transactions.totalStarted"), 5);
    assert_eq!(grown("transactions.totalCommitted"), 1);
    assert_eq!(grown("transactions.totalAborted"), 4);
    assert_eq!(grown("opLatencies.transactions.ops"), 5);
    assert!(grown("opLatencies.transactions.latency") >= 30_000);
    assert_eq!(grown("metrics.operation.writeConflicts"), 1);
    assert_eq!(number(after.as_raw(), "transactions.currentOpen"), 0);
}
