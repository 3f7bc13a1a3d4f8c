//! Old orders: a job copies them into an archive and deletes them.

use bson::{Bson, DateTime, Document, doc};

use super::{find_one, insert};
use crate::client::Client;
use crate::crash::read_all;
use crate::error::Result;

pub const ORDERS: &str = "orders";
pub const ARCHIVE: &str = "ordersArchive";
/// As many documents as a driver puts into one message.
const MESSAGE_DOCUMENTS: usize = 20_000;
const DAY_MS: i64 = 86_400_000;

/// `archiveOldOrders`.
pub fn archive_old_orders(client: &mut Client, db: &str) -> Result<usize> {
    let ninety_days_ago = DateTime::from_millis(DateTime::now().timestamp_millis() - 90 * DAY_MS);
    let filter = doc! {
        "orderDate": { "$lt": ninety_days_ago }, "status": { "$in": ["delivered", "cancelled", "refunded"] },
    };
    let found = read_all(client, db, &doc! { "find": ORDERS, "filter": filter })?;
    if found.is_empty() {
        return Ok(0);
    }
    let mut ids = Vec::new();
    let stamp = |mut order: Document| {
        ids.push(order.get("_id").cloned().unwrap_or(Bson::Null));
        order.insert("archivedAt", DateTime::now());
        order.insert("archiveReason", "age_based");
        order
    };
    let archived: Vec<Document> = found.into_iter().map(stamp).collect();
    for part in archived.chunks(MESSAGE_DOCUMENTS) {
        insert(client, db, ARCHIVE, part.to_vec())?;
    }
    client.must(db, &doc! { "delete": ORDERS, "deletes": [{ "q": { "_id": { "$in": &ids } }, "limit": 0 }] })?;
    Ok(ids.len())
}

/// `getOrder`.
pub fn get_order(client: &mut Client, db: &str, id: i32) -> Result<Option<Document>> {
    match find_one(client, db, ORDERS, doc! { "_id": id })? {
        Some(order) => Ok(Some(order)),
        None => find_one(client, db, ARCHIVE, doc! { "_id": id }),
    }
}
