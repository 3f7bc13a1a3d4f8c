//! Orders with their customer's name and city in them: copied when the order is placed, and again when the customer moves.
//! The text advises it and has no code; this is the plainest that does it.

use bson::{Document, doc};

use super::{insert, update_one};
use crate::client::Client;
use crate::crash::read_all;
use crate::error::{Result, err};

pub const CUSTOMERS: &str = "customers";
pub const ORDERS: &str = "orders";

/// A new order: what it says of the customer is read first.
pub fn place_order(client: &mut Client, db: &str, customer: i32) -> Result<()> {
    let find =
        doc! { "find": CUSTOMERS, "filter": { "_id": customer }, "projection": { "_id": 0, "name": 1, "city": 1 } };
    let found = read_all(client, db, &find)?;
    let copy = found.into_iter().next().ok_or_else(|| err!("Cannot read properties of null"))?;
    insert(client, db, ORDERS, vec![doc! { "customerId": customer, "total": 19.5, "customer": copy }])
}

/// The customer moves, and the orders with the old city are changed after it.
pub fn move_customer(client: &mut Client, db: &str, customer: i32, city: &str) -> Result<()> {
    update_one(client, db, CUSTOMERS, doc! { "_id": customer }, doc! { "$set": { "city": city } })?;
    let orders = doc! { "q": { "customerId": customer }, "u": { "$set": { "customer.city": city } }, "multi": true };
    client.must(db, &doc! { "update": ORDERS, "updates": [orders] }).map(drop)
}

/// The orders whose copy is not what their customer is.
pub fn stale_orders(client: &mut Client, db: &str) -> Result<u64> {
    let customers = read_all(client, db, &doc! { "find": CUSTOMERS })?;
    let city = |order: &Document| {
        order.get_document("customer").ok().and_then(|copy| copy.get_str("city").ok().map(String::from))
    };
    let mut stale = 0;
    for order in read_all(client, db, &doc! { "find": ORDERS, "batchSize": 10_000 })? {
        let is = |customer: &&Document| customer.get("_id") == order.get("customerId");
        let wanted = customers.iter().find(is).and_then(|customer| customer.get_str("city").ok());
        stale += u64::from(city(&order).as_deref() != wanted);
    }
    Ok(stale)
}
