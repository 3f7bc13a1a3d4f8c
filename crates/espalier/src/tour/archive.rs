//! Orders of years past.

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};

use super::client::number;
use super::guide::{AFTER, BEFORE, Guide, find_one, list};
use super::shop::HOUR_MS;
use super::table::{Table, Unit, grouped};
use super::{Chapter, Result};

pub static CHAPTER: Chapter = Chapter {
    name: "archive",
    title: "old data out of the way",
    problem: "The shop looks at orders of the last weeks all day and at those of the last years almost never, but every question \
              goes through all of them. A job that moves them by hand loses edits made meanwhile, or leaves orders in both places.",
    tell,
};

const ORDERS: usize = 30_000;
const TIMES: usize = 10;

fn tell(guide: &mut Guide) -> Result<()> {
    let (count, mut random) = (guide.scaled(ORDERS, 1_000), guide.random());
    // The archive asks the clock what is old, so the orders lead up to now.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis() as i64;
    let years_ms = 3 * 365 * 24 * HOUR_MS;
    let orders: Vec<DocBuf> = (0..count)
        .map(|id| {
            let date = now - years_ms + years_ms / count as i64 * id as i64;
            let open = id + count / 100 > count;
            let status =
                if open { "processing" } else { random.pick(&["delivered", "delivered", "delivered", "cancelled"]) };
            doc! {
                "_id": id as i32, "customerId": random.skewed(1_000) as i32, "status": status,
                "total": 10.0 + random.below(900) as f64, "orderDate": ValueRef::DateTime(date),
            }
        })
        .collect();
    guide.insert(BEFORE, "orders", &orders)?;
    guide.say(&format!(
        "Three years of orders, {} of them. What is being worked on, and an order of long ago:",
        grouped(count as u64)
    ));
    guide.show(
        "db.orders.find({ status: \"processing\" }).sort({ orderDate: -1 }).limit(20)\ndb.orders.findOne({ _id: 7 })",
    );
    let open = |_: usize| {
        vec![doc! {
            "find": "orders", "filter": &doc! { "status": "processing" }, "sort": &doc! { "orderDate": -1 }, "limit": 20,
            "singleBatch": true,
        }]
    };
    let old = |_: usize| vec![find_one("orders", 7)];
    let (open_before, old_before) = (guide.measure(BEFORE, TIMES, open)?, guide.measure(BEFORE, TIMES, old)?);
    let done: ArrayBuf = ["delivered", "cancelled"].into_iter().map(ValueRef::String).collect();
    let when = doc! { "orderDate": &doc! { "$lt": "$$NOW - 90d" }, "status": &doc! { "$in": &done } };
    let archive = doc! { "when": &when, "into": "ordersArchive", "every": "1h" };
    guide.declare(&doc! { "create": "orders", "patterns": &list(&[doc! { "archive": &archive }]) })?;
    guide.insert(AFTER, "orders", &orders)?;
    guide.say("It would run every hour; here it is told to run now. Each order moves in a commit of its own:");
    guide.show("db.runCommand({ runPattern: \"orders\" })");
    let ran = guide.run(AFTER, &doc! { "runPattern": "orders" })?;
    let moved = number(ran.as_raw(), &["moved"]);
    guide.say(&format!("{} orders have moved. The same statements again:", grouped(moved as u64)));
    let (open_after, old_after) = (guide.measure(AFTER, TIMES, open)?, guide.measure(AFTER, TIMES, old)?);
    Table::new()
        .reading("what is being worked on", &open_before, &open_after)
        .reading("an order of long ago", &old_before, &old_after)
        .row("orders in the way", count as f64, count as f64 - moved, Unit::Count)
        .show(guide.screen())?;
    guide.say("An order of long ago is found wherever it is, and a write to it brings it back.");
    Ok(())
}
