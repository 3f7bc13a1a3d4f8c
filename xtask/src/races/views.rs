//! Page views: clients record them, and the flush job runs as it is scheduled.

use bson::doc;

use super::{CLIENTS, Counts, DB, Race, together};
use crate::client::Client;
use crate::crash::read_all;
use crate::error::Result;
use crate::seeds::as_number;
use crate::seeds::views::{PRODUCTS, flush_view_counts, record_view};

pub static RACE: Race = Race {
    name: "views",
    what: "300 views of one product by 15 clients; the flush job runs 4 times within its five minutes",
    by_hand,
    declared: Some(declared),
};

const EACH: u64 = 20;
const FLUSHES: usize = 4;

fn by_hand(port: u16) -> Result<Counts> {
    let mut client = Client::connect(port)?;
    let product = doc! { "_id": 1, "approximateMetrics": { "viewCount": 0 } };
    client.must(DB, &doc! { "insert": PRODUCTS, "documents": [product] })?;
    together(port, CLIENTS, |client, number| {
        if number == 0 {
            for _ in 0..FLUSHES {
                flush_view_counts(client, DB)?;
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            return Ok(());
        }
        (0..EACH).try_for_each(|_| record_view(client, DB, 1))
    })?;
    flush_view_counts(&mut client, DB)?;
    judge(&mut client)
}

/// Clients count in the product itself; the job is the pattern's, and runs as often.
fn declared(port: u16) -> Result<Counts> {
    let mut client = Client::connect(port)?;
    let approximate = doc! {
        "fields": ["approximateMetrics.viewCount"], "flush": { "count": 100, "within": "50ms" },
        "stamp": "approximateMetrics.lastFlushed",
    };
    client.must(DB, &doc! { "create": PRODUCTS, "patterns": [{ "approximate": approximate }] })?;
    let product = doc! { "_id": 1, "approximateMetrics": { "viewCount": 0 } };
    client.must(DB, &doc! { "insert": PRODUCTS, "documents": [product] })?;
    together(port, CLIENTS, |client, number| {
        if number == 0 {
            for _ in 0..FLUSHES {
                client.must(DB, &doc! { "runPattern": PRODUCTS })?;
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            return Ok(());
        }
        let view = doc! { "q": { "_id": 1 }, "u": { "$inc": { "approximateMetrics.viewCount": 1 } } };
        (0..EACH).try_for_each(|_| client.must(DB, &doc! { "update": PRODUCTS, "updates": [&view] }).map(drop))
    })?;
    judge(&mut client)
}

fn judge(client: &mut Client) -> Result<Counts> {
    let product = read_all(client, DB, &doc! { "find": PRODUCTS })?;
    let metrics = product.first().and_then(|product| product.get_document("approximateMetrics").ok());
    let counted = metrics.map_or(0, |metrics| as_number(metrics.get("viewCount")));
    let views = (CLIENTS as i64 - 1) * EACH as i64;
    Ok(vec![("views counted again", (counted - views).max(0) as u64), ("views lost", (views - counted).max(0) as u64)])
}
