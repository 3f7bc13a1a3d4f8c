//! The most helpful reviews of a product.

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};

use super::computed::stock;
use super::guide::{AFTER, BEFORE, Guide, find_one, list, update_one};
use super::table::{Table, grouped};
use super::{Chapter, Result};

pub static CHAPTER: Chapter = Chapter {
    name: "subset",
    title: "the top few kept in the parent",
    problem: "The page shows a product and its three most helpful reviews. Embedding all of them makes the product huge; sorting \
              them out costs every visitor; and a list kept by hand is wrong after the first deleted or upvoted review.",
    tell,
};

const TIMES: usize = 20;

fn tell(guide: &mut Guide) -> Result<()> {
    let (products, reviews) = stock(guide)?;
    // A review of the most popular product that will be found helpful.
    let is_first = |review: &&DocBuf| matches!(review.as_raw().get("productId"), Some(ValueRef::Int32(0)));
    let first = reviews.iter().find(is_first).and_then(|review| review.as_raw().get("_id"));
    let Some(ValueRef::Int32(helped)) = first else { return Err("the most popular product has no review".into()) };
    guide.say(&format!(
        "{} reviews again. The page with the top three, and a vote for a review:",
        grouped(reviews.len() as u64)
    ));
    guide.show(
        "db.products.findOne({ _id: 0 })\n\
         db.reviews.find({ productId: 0 }, { customerName: 1, rating: 1, title: 1, helpful: 1 })\n  \
         .sort({ helpful: -1, _id: 1 }).limit(3)\n\
         db.reviews.updateOne({ _id: review }, { $inc: { helpful: 1 } })",
    );
    let by_hand = |_: usize| {
        let shown = doc! { "customerName": 1, "rating": 1, "title": 1, "helpful": 1 };
        let top = doc! {
            "find": "reviews", "filter": &doc! { "productId": 0 }, "projection": &shown,
            "sort": &doc! { "helpful": -1, "_id": 1 }, "limit": 3, "singleBatch": true,
        };
        vec![find_one("products", 0), top]
    };
    let vote = |_: usize| vec![update_one("reviews", helped, &doc! { "$inc": &doc! { "helpful": 1 } })];
    let page_before = guide.measure(BEFORE, TIMES, by_hand)?;
    let vote_before = guide.measure(BEFORE, TIMES, vote)?;
    let fields: ArrayBuf = ["customerName", "rating", "title", "helpful"].into_iter().map(ValueRef::String).collect();
    let subset = doc! {
        "from": "reviews", "on": &doc! { "productId": "_id" }, "into": "topReviews", "sort": &doc! { "helpful": -1 },
        "limit": 3, "fields": &fields,
    };
    guide.declare(&doc! { "create": "products", "patterns": &list(&[doc! { "subset": &subset }]) })?;
    guide.insert(AFTER, "products", &products)?;
    guide.insert(AFTER, "reviews", &reviews)?;
    guide.say("The three are in the product, and the page is its first statement alone. Votes are as before:");
    guide.show("db.products.findOne({ _id: 0 })\ndb.reviews.updateOne({ _id: review }, { $inc: { helpful: 1 } })");
    let page_after = guide.measure(AFTER, TIMES, |_| vec![find_one("products", 0)])?;
    let vote_after = guide.measure(AFTER, TIMES, vote)?;
    Table::new()
        .reading("a product's page", &page_before, &page_after)
        .writing("a vote", &vote_before, &vote_after)
        .show(guide.screen())?;
    guide.say("A vote ranks the list anew in its own commit. A deleted review makes room for the fourth.");
    Ok(())
}
