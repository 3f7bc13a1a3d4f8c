//! Reviews of a product: the count and the best three are kept in the product, the average by a job.

use bson::{Bson, DateTime, Document, doc};

use super::{insert, update_one};
use crate::client::Client;
use crate::crash::read_all;
use crate::error::Result;

pub const PRODUCTS: &str = "products";
pub const REVIEWS: &str = "reviews";

/// A new review in the collection of reviews.
pub fn insert_review(client: &mut Client, db: &str, product: i32, rating: i32, helpful: i32) -> Result<()> {
    let review = doc! {
        "productId": product, "customerName": "Eduarda Almeida", "rating": rating, "helpful": helpful,
        "title": "Handles rough terrain with confidence", "createdAt": DateTime::now(),
    };
    insert(client, db, REVIEWS, vec![review])
}

/// A new review: inserted, counted, and the best three chosen again by the application.
pub fn add_review(client: &mut Client, db: &str, product: i32, rating: i32, helpful: i32) -> Result<()> {
    insert_review(client, db, product, rating, helpful)?;
    let top = top_three(client, db, product)?;
    let change = doc! {
        "$set": { "reviewSummary.topReviews": top }, "$inc": { "reviewSummary.totalCount": 1 },
    };
    update_one(client, db, PRODUCTS, doc! { "_id": product }, change).map(drop)
}

/// The three reviews that were found most helpful.
pub fn top_three(client: &mut Client, db: &str, product: i32) -> Result<Vec<Document>> {
    let find = doc! {
        "find": REVIEWS, "filter": { "productId": product }, "sort": { "helpful": -1 }, "limit": 3,
        "projection": { "_id": 0, "customerName": 1, "rating": 1, "title": 1, "helpful": 1 },
    };
    read_all(client, db, &find)
}

/// The job that computes the average again.
pub fn recalculate(client: &mut Client, db: &str, product: i32) -> Result<()> {
    let pipeline = vec![
        doc! { "$match": { "productId": product } },
        doc! { "$group": { "_id": null, "avgRating": { "$avg": "$rating" } } },
    ];
    let stats = read_all(client, db, &doc! { "aggregate": REVIEWS, "pipeline": pipeline, "cursor": {} })?;
    // `stats.avgRating` of nothing throws, as it does there.
    let average = stats.first().and_then(|stats| stats.get("avgRating")).and_then(Bson::as_f64);
    let average = average.ok_or_else(|| crate::error::err!("Cannot read properties of undefined"))?;
    let change = doc! { "$set": { "reviewSummary.averageRating": (average * 10.0).round() / 10.0 } };
    update_one(client, db, PRODUCTS, doc! { "_id": product }, change).map(drop)
}
