//! The figures of a product's reviews.

use espalier_value::{DocBuf, ValueRef, doc};

use super::guide::{AFTER, BEFORE, Guide, aggregate, find_one, insert_one, list};
use super::shop;
use super::table::{Table, grouped};
use super::{Chapter, Result};

pub static CHAPTER: Chapter = Chapter {
    name: "computed",
    title: "aggregates kept in the parent",
    problem: "A product page shows how many reviews there are and their average. Aggregated for every visitor, each visit reads \
              every review; kept by hand, every code path that touches a review has to remember the product.",
    tell,
};

const PRODUCTS: usize = 400;
const REVIEWS: usize = 20_000;
const TIMES: usize = 20;

/// Products and their reviews, inserted and with an index for the way between them.
pub fn stock(guide: &mut Guide) -> Result<(Vec<DocBuf>, Vec<DocBuf>)> {
    let (count, reviews) = (guide.scaled(PRODUCTS, 20), guide.scaled(REVIEWS, 600));
    let mut random = guide.random();
    let products = shop::products(count, &mut random);
    let reviews = shop::reviews(reviews, count, &mut random);
    guide.insert(BEFORE, "products", &products)?;
    guide.insert(BEFORE, "reviews", &reviews)?;
    let index = doc! { "key": &doc! { "productId": 1 }, "name": "productId_1" };
    guide.run(BEFORE, &doc! { "createIndexes": "reviews", "indexes": &list(&[index]) })?;
    Ok((products, reviews))
}

fn tell(guide: &mut Guide) -> Result<()> {
    let (products, reviews) = stock(guide)?;
    guide.say(&format!(
        "{} reviews of {} products, most of them of a few. The page of the most popular product, and one more review of it:",
        grouped(reviews.len() as u64),
        grouped(products.len() as u64)
    ));
    guide.show(
        "db.products.findOne({ _id: 0 })\n\
         db.reviews.aggregate([ { $match: { productId: 0 } },\n  \
         { $group: { _id: null, totalCount: { $count: {} }, averageRating: { $avg: \"$rating\" } } } ])\n\
         db.reviews.insertOne({ productId: 0, rating: 5, … })",
    );
    let page_by_hand = |_: usize| {
        let group = doc! {
            "_id": ValueRef::Null, "totalCount": &doc! { "$count": &DocBuf::new() },
            "averageRating": &doc! { "$avg": "$rating" },
        };
        let stages = [doc! { "$match": &doc! { "productId": 0 } }, doc! { "$group": &group }];
        vec![find_one("products", 0), aggregate("reviews", &stages)]
    };
    let mut made = guide.random();
    let added: Vec<DocBuf> = (0..TIMES).map(|at| shop::review(1_000_000 + at, 0, &mut made)).collect();
    let add = |at: usize| vec![insert_one("reviews", &added[at])];
    let page_before = guide.measure(BEFORE, TIMES, page_by_hand)?;
    let add_before = guide.measure(BEFORE, TIMES, add)?;
    let fields = doc! {
        "totalCount": &doc! { "$count": &DocBuf::new() },
        "averageRating": &doc! { "$avg": "$rating", "round": 1 },
        "ratingDistribution": &doc! { "$countBy": "$rating" },
    };
    let computed = doc! {
        "from": "reviews", "on": &doc! { "productId": "_id" }, "into": "reviewSummary", "fields": &fields,
    };
    guide.declare(&doc! { "create": "products", "patterns": &list(&[doc! { "computed": &computed }]) })?;
    guide.insert(AFTER, "products", &products)?;
    guide.insert(AFTER, "reviews", &reviews)?;
    guide.say("The figures are in the product, so the page is its first statement alone. A review is added as before:");
    guide.show("db.products.findOne({ _id: 0 })\ndb.reviews.insertOne({ productId: 0, rating: 5, … })");
    let page_after = guide.measure(AFTER, TIMES, |_| vec![find_one("products", 0)])?;
    let add_after = guide.measure(AFTER, TIMES, add)?;
    Table::new()
        .reading("a product's page", &page_before, &page_after)
        .writing("one more review", &add_before, &add_after)
        .show(guide.screen())?;
    guide.say(
        "A review now writes two documents in one commit: that is what it costs. Pages are read far more often than reviews are \
         written, and edited, deleted and moved reviews are counted right as well.",
    );
    Ok(())
}
