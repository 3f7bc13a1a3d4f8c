//! Orders that have their customer's city: customers place orders while they move, and two offices note that they moved.

use bson::doc;

use super::{CLIENTS, Counts, DB, Race, together};
use crate::client::Client;
use crate::error::Result;
use crate::seeds::reference::{CUSTOMERS, ORDERS, move_customer, place_order, stale_orders};
use crate::seeds::{insert, update_one};

pub static RACE: Race = Race {
    name: "reference",
    what: "4 customers place 560 orders by 14 clients while 2 clients note 80 moves",
    by_hand: |port| race(port, place_order, move_customer),
    declared: Some(|port| {
        let mut client = Client::connect(port)?;
        let reference = doc! {
            "from": CUSTOMERS, "on": { "customerId": "_id" }, "into": "customer", "fields": ["name", "city"],
        };
        client.must(DB, &doc! { "create": ORDERS, "patterns": [{ "reference": reference }] })?;
        race(
            port,
            |client, db, customer| insert(client, db, ORDERS, vec![doc! { "customerId": customer, "total": 19.5 }]),
            |client, db, customer, city| {
                update_one(client, db, CUSTOMERS, doc! { "_id": customer }, doc! { "$set": { "city": city } }).map(drop)
            },
        )
    }),
};

const CUSTOMERS_COUNT: i32 = 4;
/// Of the clients, this many note moves.
const OFFICES: usize = 2;
const ORDERS_EACH: i32 = 40;
const MOVES_EACH: i32 = 40;

fn race(
    port: u16,
    place: fn(&mut Client, &str, i32) -> Result<()>,
    moves: fn(&mut Client, &str, i32, &str) -> Result<()>,
) -> Result<Counts> {
    let mut client = Client::connect(port)?;
    let customers = (0..CUSTOMERS_COUNT).map(|id| doc! { "_id": id, "name": "Ada", "city": "London" }).collect();
    insert(&mut client, DB, CUSTOMERS, customers)?;
    together(port, CLIENTS, |client, number| {
        if number < OFFICES {
            return (0..MOVES_EACH)
                .try_for_each(|at| moves(client, DB, at % CUSTOMERS_COUNT, &format!("city {number} {at}")));
        }
        (0..ORDERS_EACH).try_for_each(|at| place(client, DB, at % CUSTOMERS_COUNT))
    })?;
    let placed = client.must(DB, &doc! { "count": ORDERS })?;
    let placed = crate::seeds::as_number(placed.get("n"));
    let expected = (CLIENTS - OFFICES) as i64 * i64::from(ORDERS_EACH);
    Ok(vec![
        ("orders with a city that their customer does not live in", stale_orders(&mut client, DB)?),
        ("orders lost", (expected - placed).max(0) as u64),
    ])
}
