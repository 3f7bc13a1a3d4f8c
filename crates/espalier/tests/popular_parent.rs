//! Many clients add to one document by way of a pattern: reviews of one popular product.
#![allow(clippy::unwrap_used)]

mod support;

use std::time::{Duration, Instant};

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};
use support::{Server, batch, list, number, together};

const CLIENTS: usize = 32;

fn shop(server: &Server) {
    let fields = doc! {
        "totalCount": &doc! { "$count": &DocBuf::new() }, "averageRating": &doc! { "$avg": "$rating", "round": 1 },
        "ratingDistribution": &doc! { "$countBy": "$rating" }, "best": &doc! { "$max": "$rating" },
    };
    let on = doc! { "productId": "_id" };
    let computed = doc! { "from": "reviews", "on": &on, "into": "summary", "fields": &fields };
    let shown: ArrayBuf = ["rating", "helpful"].into_iter().map(ValueRef::String).collect();
    let subset = doc! {
        "from": "reviews", "on": &on, "into": "summary.top", "sort": &doc! { "helpful": -1 }, "limit": 3, "fields": &shown,
    };
    let patterns = list([doc! { "computed": &computed }, doc! { "subset": &subset }]);
    let mut client = server.connect();
    client.ok(doc! { "create": "products", "patterns": &patterns });
    client.ok(doc! { "insert": "products", "documents": &list([doc! { "_id": 1, "name": "bike" }]) });
}

fn review(id: usize) -> DocBuf {
    let doc = doc! { "_id": id as i32, "productId": 1, "rating": 1 + (id % 5) as i32, "helpful": id as i32 };
    doc! { "insert": "reviews", "documents": &list([doc]), "writeConcern": &doc! { "w": 1, "j": false } }
}

/// Adds reviews from some clients for a while: how many each has added, and its longest wait.
fn add(server: &Server, clients: usize, from: usize, duration: Duration) -> Vec<(usize, Duration)> {
    let address = server.address();
    together(clients, move |me| {
        let mut client = support::Client::connect(address);
        let (begun, mut added, mut longest) = (Instant::now(), 0, Duration::ZERO);
        while begun.elapsed() < duration {
            let sent = Instant::now();
            // `ok` also fails for a conflict that reaches the client.
            let reply = client.ok(review(from + me * 100_000 + added));
            assert!(reply.as_raw().get("writeErrors").is_none(), "{reply:?}");
            longest = longest.max(sent.elapsed());
            added += 1;
        }
        (added, longest)
    })
}

#[test]
fn thirty_two_clients_add_reviews_of_one_product() {
    let server = Server::start(&[]);
    shop(&server);
    let duration = Duration::from_secs(2);
    let alone = add(&server, 1, 10_000_000, duration)[0].0;
    let each = add(&server, CLIENTS, 0, duration);
    let together: usize = each.iter().map(|(added, _)| added).sum();
    let (least, most) = (each.iter().map(|(n, _)| *n).min().unwrap(), each.iter().map(|(n, _)| *n).max().unwrap());
    let longest = each.iter().map(|(_, longest)| *longest).max().unwrap();
    println!("one client added {alone}, {CLIENTS} together {together} ({least} to {most} each), longest {longest:?}");
    // A turn is handed from thread to thread, which costs something on a busy machine, but they do not get into each other's
    // way without end, and nobody starves.
    assert!(together * 5 > alone, "{CLIENTS} clients added {together} where one adds {alone}");
    assert!(least * 4 > most, "somebody added {least} where another added {most}");
    assert!(longest < Duration::from_secs(5), "somebody waited {longest:?}");
    let found = server.connect().ok(doc! { "find": "products" });
    let summary = batch(&found)[0].get_doc("summary").unwrap();
    assert_eq!(number(summary, "totalCount"), (alone + together) as i64);
    server.check(&["products", "reviews"]);
}
