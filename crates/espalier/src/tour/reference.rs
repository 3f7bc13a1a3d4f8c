//! Orders that show their customer.

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};

use super::guide::{AFTER, BEFORE, Guide, aggregate, list, update_one};
use super::shop::{self, DAY, HOUR_MS};
use super::table::{Table, Unit, grouped};
use super::{Chapter, Result};

pub static CHAPTER: Chapter = Chapter {
    name: "reference",
    title: "copied fields of another document",
    problem: "The list of today's orders shows each customer's name and city. Looked up, every order on the list costs a second \
              read; copied by hand, the copies are wrong from the day a customer moves.",
    tell,
};

const CUSTOMERS: usize = 1_000;
const ORDERS: usize = 20_000;
const TIMES: usize = 20;

fn tell(guide: &mut Guide) -> Result<()> {
    let (customers, count) = (guide.scaled(CUSTOMERS, 50), guide.scaled(ORDERS, 500));
    let mut random = guide.random();
    let shop_customers = shop::customers(customers, &mut random);
    let orders: Vec<DocBuf> = (0..count)
        .map(|id| {
            doc! {
                "_id": id as i32, "customerId": random.skewed(customers) as i32, "total": 10.0 + random.below(900) as f64,
                "orderDate": ValueRef::DateTime(DAY - id as i64 * HOUR_MS / 20),
            }
        })
        .collect();
    guide.insert(BEFORE, "customers", &shop_customers)?;
    guide.insert(BEFORE, "orders", &orders)?;
    let index = doc! { "key": &doc! { "orderDate": -1 }, "name": "orderDate_-1" };
    guide.run(BEFORE, &doc! { "createIndexes": "orders", "indexes": &list(std::slice::from_ref(&index)) })?;
    guide.say(&format!(
        "{} orders of {} customers, newest first by an index. A page of fifty, and a customer who moves:",
        grouped(count as u64),
        grouped(customers as u64)
    ));
    guide.show(
        "db.orders.aggregate([ { $sort: { orderDate: -1 } }, { $limit: 50 },\n  \
         { $lookup: { from: \"customers\", localField: \"customerId\", foreignField: \"_id\", as: \"customer\",\n             \
         pipeline: [ { $project: { name: 1, city: 1 } } ] } } ])\n\
         db.customers.updateOne({ _id: 0 }, { $set: { city: \"Porto\" } })",
    );
    let looked_up = |_: usize| {
        let project = doc! { "$project": &doc! { "name": 1, "city": 1 } };
        let lookup = doc! {
            "from": "customers", "localField": "customerId", "foreignField": "_id", "as": "customer",
            "pipeline": &list(&[project]),
        };
        let newest = doc! { "$sort": &doc! { "orderDate": -1 } };
        vec![aggregate("orders", &[newest, doc! { "$limit": 50 }, doc! { "$lookup": &lookup }])]
    };
    let moves = |at: usize| {
        let city = if at.is_multiple_of(2) { "Porto" } else { "Braga" };
        vec![update_one("customers", 0, &doc! { "$set": &doc! { "city": city } })]
    };
    let page_before = guide.measure(BEFORE, TIMES, looked_up)?;
    let move_before = guide.measure(BEFORE, TIMES, moves)?;
    let fields: ArrayBuf = ["name", "city"].into_iter().map(ValueRef::String).collect();
    let reference = doc! {
        "from": "customers", "on": &doc! { "customerId": "_id" }, "into": "customer", "fields": &fields,
    };
    guide.declare(&doc! { "create": "orders", "patterns": &list(&[doc! { "reference": &reference }]) })?;
    guide.insert(AFTER, "customers", &shop_customers)?;
    guide.insert(AFTER, "orders", &orders)?;
    guide.run(AFTER, &doc! { "createIndexes": "orders", "indexes": &list(&[index]) })?;
    guide.say("The copies are in the orders, so the list is a plain find. The customer moves as before:");
    guide.show("db.orders.find().sort({ orderDate: -1 }).limit(50)\ndb.customers.updateOne({ _id: 0 }, { $set: { city: \"Porto\" } })");
    let find = |_: usize| {
        vec![
            doc! { "find": "orders", "sort": &doc! { "orderDate": -1 }, "limit": 50, "batchSize": 50, "singleBatch": true },
        ]
    };
    let page_after = guide.measure(AFTER, TIMES, find)?;
    let move_after = guide.measure(AFTER, TIMES, moves)?;
    let own =
        orders.iter().filter(|order| matches!(order.as_raw().get("customerId"), Some(ValueRef::Int32(0)))).count();
    Table::new()
        .reading("a page of orders", &page_before, &page_after)
        .row("a customer moves: bytes written", move_before.logged, move_after.logged, Unit::Bytes)
        .row("a customer moves: time", move_before.time.as_secs_f64(), move_after.time.as_secs_f64(), Unit::Seconds)
        .show(guide.screen())?;
    guide.say(&format!(
        "This customer, the best there is, has {} orders, and all of them changed in the commit of the move. That is the price, \
         paid when customers move and not when orders are looked at.",
        grouped(own as u64)
    ));
    Ok(())
}
