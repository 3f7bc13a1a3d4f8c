//! A collection for each dealer.

use espalier_value::{DocBuf, doc};

use super::guide::{AFTER, BEFORE, Guide, list};
use super::table::{Table, Unit, grouped};
use super::{Chapter, Result};

pub static CHAPTER: Chapter = Chapter {
    name: "shared",
    title: "many logical collections in one",
    problem: "Each dealer has a collection of orders of its own: easy to begin with, and hard to live with when there are hundreds \
              of collections and indexes, and a question about all dealers is a question to each of them.",
    tell,
};

const DEALERS: usize = 200;
const EACH: usize = 40;
const TIMES: usize = 5;

fn tell(guide: &mut Guide) -> Result<()> {
    let (dealers, mut random) = (guide.scaled(DEALERS, 10), guide.random());
    let orders: Vec<Vec<DocBuf>> = (0..dealers)
        .map(|_| (0..EACH).map(|id| doc! { "_id": id as i32, "total": random.below(1_000) as i32 }).collect())
        .collect();
    let name = |dealer: usize| format!("dealer_{dealer}_orders");
    let load = |guide: &mut Guide, db: &str| -> Result<()> {
        orders.iter().enumerate().try_for_each(|(dealer, orders)| guide.insert(db, &name(dealer), orders))
    };
    load(guide, BEFORE)?;
    let index = doc! { "key": &doc! { "total": 1 }, "name": "total_1" };
    for dealer in 0..dealers {
        guide.run(BEFORE, &doc! { "createIndexes": &name(dealer), "indexes": &list(std::slice::from_ref(&index)) })?;
    }
    guide.say(&format!(
        "{} dealers with {EACH} orders each. The large orders of all of them, and those of one:",
        grouped(dealers as u64)
    ));
    guide.show(
        "for (const name of db.getCollectionNames()) db[name].find({ total: { $gte: 950 } })\n\
         db.dealer_3_orders.find({ total: { $gte: 950 } })",
    );
    let large = |collection: &str| {
        doc! {
            "find": collection, "filter": &doc! { "total": &doc! { "$gte": 950 } }, "batchSize": 10_000, "singleBatch": true,
        }
    };
    let one = |_: usize| vec![large("dealer_3_orders")];
    let all_before = guide.measure(BEFORE, TIMES, |_| (0..dealers).map(|dealer| large(&name(dealer))).collect())?;
    let one_before = guide.measure(BEFORE, TIMES, one)?;
    let shared = doc! { "discriminator": "dealerId", "name": "dealer_{dealerId}_orders" };
    guide.declare(&doc! { "create": "orders", "patterns": &list(&[doc! { "shared": &shared }]) })?;
    load(guide, AFTER)?;
    let across = doc! { "key": &doc! { "total": 1 }, "name": "total_of_all_1" };
    for (collection, index) in [("dealer_3_orders", &index), ("orders", &across)] {
        guide.run(AFTER, &doc! { "createIndexes": collection, "indexes": &list(std::slice::from_ref(index)) })?;
    }
    guide.say("Every dealer's collection is still there for whoever uses it, and all of them are one:");
    guide.show("db.orders.find({ total: { $gte: 950 } })\ndb.dealer_3_orders.find({ total: { $gte: 950 } })");
    let all_after = guide.measure(AFTER, TIMES, |_| vec![large("orders")])?;
    let one_after = guide.measure(AFTER, TIMES, one)?;
    let (collections_before, collections_after) = (collections(guide, BEFORE)?, collections(guide, AFTER)?);
    Table::new()
        .row("all dealers: commands", dealers as f64, 1.0, Unit::Count)
        .reading("all dealers", &all_before, &all_after)
        .row("one dealer: bytes read", one_before.received, one_after.received, Unit::Bytes)
        .row("one dealer: time", one_before.time.as_secs_f64(), one_after.time.as_secs_f64(), Unit::Seconds)
        .row("collections", collections_before, collections_after, Unit::Count)
        .show(guide.screen())?;
    guide.say("Two dealers may use the same _id, and no dealer sees another's orders.");
    Ok(())
}

fn collections(guide: &mut Guide, db: &str) -> Result<f64> {
    // Those that are stored: the logical ones are listed, too, and are none.
    let cursor = doc! { "batchSize": 10_000 };
    let listed = guide.run(db, &doc! { "listCollections": 1, "nameOnly": true, "rawData": true, "cursor": &cursor })?;
    let batch = listed.as_raw().get_doc("cursor").and_then(|cursor| cursor.get("firstBatch"));
    Ok(batch.and_then(|batch| batch.as_array()).map_or(0, |names| names.iter().count()) as f64)
}
