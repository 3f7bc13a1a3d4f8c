//! Page views: each is an event, which a scheduled job adds to the product's count.

use bson::{Bson, DateTime, Document, doc};

use super::insert;
use crate::client::Client;
use crate::crash::read_all;
use crate::error::Result;

pub const PRODUCTS: &str = "products";
const EVENTS: &str = "viewEvents";
const FIVE_MINUTES_MS: i64 = 300_000;

pub fn record_view(client: &mut Client, db: &str, product: i32) -> Result<()> {
    insert(client, db, EVENTS, vec![doc! { "productId": product, "count": 1, "timestamp": DateTime::now() }])
}

/// `flushViewCounts`.
pub fn flush_view_counts(client: &mut Client, db: &str) -> Result<()> {
    let five_minutes_ago = DateTime::from_millis(DateTime::now().timestamp_millis() - FIVE_MINUTES_MS);
    let pipeline = vec![
        doc! { "$match": { "timestamp": { "$gte": five_minutes_ago } } },
        doc! { "$group": { "_id": "$productId", "total": { "$sum": "$count" } } },
    ];
    let results = read_all(client, db, &doc! { "aggregate": EVENTS, "pipeline": pipeline, "cursor": {} })?;
    let add = |result: &Document| {
        let total = result.get("total").cloned().unwrap_or(Bson::Int32(0));
        let id = result.get("_id").cloned().unwrap_or(Bson::Null);
        doc! { "q": { "_id": id }, "u": { "$inc": { "approximateMetrics.viewCount": total } } }
    };
    let updates: Vec<Document> = results.iter().map(add).collect();
    if !updates.is_empty() {
        client.must(db, &doc! { "update": PRODUCTS, "updates": updates })?;
        let old = doc! { "timestamp": { "$lt": five_minutes_ago } };
        client.must(db, &doc! { "delete": EVENTS, "deletes": [{ "q": old, "limit": 0 }] })?;
    }
    Ok(())
}
