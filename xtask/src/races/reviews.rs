//! Reviews: customers write them, and the summary in the product follows.

use bson::{Document, doc};

use super::{CLIENTS, Counts, DB, Race, together};
use crate::client::Client;
use crate::crash::read_all;
use crate::error::Result;
use crate::seeds::reviews::{PRODUCTS, REVIEWS, add_review, insert_review, recalculate, top_three};
use crate::seeds::{as_number, update_one};

pub static COMPUTED: Race = Race {
    name: "computed",
    what: "10 rounds of 15 reviews at once beside the job that computes the average",
    by_hand: |port| rounds(port, None, stale_average),
    declared: Some(|port| {
        let fields = doc! { "totalCount": { "$count": {} }, "averageRating": { "$avg": "$rating", "round": 1 } };
        let computed =
            doc! { "from": REVIEWS, "on": { "productId": "_id" }, "into": "reviewSummary", "fields": fields };
        rounds(port, Some(doc! { "computed": computed }), stale_average)
    }),
};

pub static SUBSET: Race = Race {
    name: "subset",
    what: "10 rounds of 15 reviews at once; each customer's application chooses the best three again",
    by_hand: |port| rounds(port, None, wrong_top),
    declared: Some(|port| {
        let subset = doc! {
            "from": REVIEWS, "on": { "productId": "_id" }, "into": "reviewSummary.topReviews", "sort": { "helpful": -1 },
            "limit": 3, "fields": ["customerName", "rating", "title", "helpful"],
        };
        rounds(port, Some(doc! { "subset": subset }), wrong_top)
    }),
};

pub static EDITED: Race = Race {
    name: "computed-edits",
    what: "10 rounds of 16 reviews at once, a third of which are edited and a third deleted by their customers",
    by_hand: |port| edited(port, None),
    declared: Some(|port| {
        let (from, on) = (REVIEWS, doc! { "productId": "_id" });
        let fields = doc! { "totalCount": { "$count": {} }, "averageRating": { "$avg": "$rating", "round": 1 } };
        let computed = doc! { "from": from, "on": &on, "into": "reviewSummary", "fields": fields };
        let subset = doc! {
            "from": from, "on": on, "into": "reviewSummary.topReviews", "sort": { "helpful": -1 }, "limit": 3,
            "fields": ["customerName", "rating", "title", "helpful"],
        };
        edited(port, Some(vec![doc! { "computed": computed }, doc! { "subset": subset }]))
    }),
};

const ROUNDS: i32 = 10;

/// Reviews that do not stay as they were written. The text has no code for that: the application edits the review, and the
/// job computes the average once more when all is over.
fn edited(port: u16, patterns: Option<Vec<Document>>) -> Result<Counts> {
    let mut client = Client::connect(port)?;
    let declared = patterns.is_some();
    if let Some(patterns) = patterns {
        client.must(DB, &doc! { "create": PRODUCTS, "patterns": patterns })?;
    }
    let mut wrong = [0; 3];
    for product in 0..ROUNDS {
        client.must(DB, &doc! { "insert": PRODUCTS, "documents": [{ "_id": product, "name": "Mountain-100" }] })?;
        together(port, CLIENTS, |client, number| {
            let helpful = number as i32;
            match declared {
                true => insert_review(client, DB, product, helpful % 5 + 1, helpful)?,
                false => add_review(client, DB, product, helpful % 5 + 1, helpful)?,
            }
            let own = doc! { "productId": product, "helpful": helpful };
            match number % 3 {
                0 => {
                    let delete = doc! { "delete": REVIEWS, "deletes": [{ "q": own, "limit": 1 }] };
                    client.must(DB, &delete).map(drop)
                }
                1 => update_one(client, DB, REVIEWS, own, doc! { "$set": { "rating": 1, "helpful": 100 + helpful } })
                    .map(drop),
                _ => Ok(()),
            }
        })?;
        if !declared {
            recalculate(&mut client, DB, product)?;
        }
        let reviews = read_all(&mut client, DB, &doc! { "find": REVIEWS, "filter": { "productId": product } })?;
        let counted = as_number(summary(&mut client, product)?.get("totalCount"));
        wrong[0] += u64::from(counted != reviews.len() as i64);
        wrong[1] += u64::from(stale_average(&mut client, product)?.1);
        wrong[2] += u64::from(wrong_top(&mut client, product)?.1);
    }
    Ok(vec![
        ("products of 10 with another count than reviews", wrong[0]),
        ("with an average that is not theirs", wrong[1]),
        ("whose best three are not the best three", wrong[2]),
    ])
}

/// Every round is a product of its own. With a pattern declared, customers insert their reviews and do nothing else.
fn rounds(
    port: u16,
    pattern: Option<Document>,
    wrong: fn(&mut Client, i32) -> Result<(&'static str, bool)>,
) -> Result<Counts> {
    let mut client = Client::connect(port)?;
    let declared = pattern.is_some();
    if let Some(pattern) = pattern {
        client.must(DB, &doc! { "create": PRODUCTS, "patterns": [pattern] })?;
    }
    let (mut name, mut count) = ("", 0);
    for product in 0..ROUNDS {
        client.must(DB, &doc! { "insert": PRODUCTS, "documents": [{ "_id": product, "name": "Mountain-100" }] })?;
        together(port, CLIENTS, |client, number| {
            if declared {
                return if number > 0 {
                    insert_review(client, DB, product, number as i32 % 5 + 1, number as i32)
                } else {
                    Ok(())
                };
            }
            if number > 0 {
                return add_review(client, DB, product, number as i32 % 5 + 1, number as i32);
            }
            // On an empty set the job throws; whoever schedules it runs it again.
            while recalculate(client, DB, product).is_err() {}
            Ok(())
        })?;
        let (what, is_wrong) = wrong(&mut client, product)?;
        name = what;
        count += u64::from(is_wrong);
    }
    Ok(vec![(name, count)])
}

fn summary(client: &mut Client, product: i32) -> Result<Document> {
    let found = read_all(client, DB, &doc! { "find": PRODUCTS, "filter": { "_id": product } })?;
    Ok(found.first().and_then(|product| product.get_document("reviewSummary").ok()).cloned().unwrap_or_default())
}

fn stale_average(client: &mut Client, product: i32) -> Result<(&'static str, bool)> {
    let ratings: Vec<f64> = read_all(client, DB, &doc! { "find": REVIEWS, "filter": { "productId": product } })?
        .iter()
        .filter_map(|review| review.get_i32("rating").ok().map(f64::from))
        .collect();
    let average = (ratings.iter().sum::<f64>() / ratings.len() as f64 * 10.0).round() / 10.0;
    let stored = summary(client, product)?.get_f64("averageRating").unwrap_or(f64::NAN);
    Ok(("products of 10 with an average that is not that of their reviews", stored != average))
}

fn wrong_top(client: &mut Client, product: i32) -> Result<(&'static str, bool)> {
    let helpful = |reviews: &[Document]| -> Vec<i32> {
        reviews.iter().filter_map(|review| review.get_i32("helpful").ok()).collect()
    };
    let stored: Vec<Document> = summary(client, product)?
        .get_array("topReviews")
        .map(|top| top.iter().filter_map(|review| review.as_document().cloned()).collect())
        .unwrap_or_default();
    let best = top_three(client, DB, product)?;
    Ok(("products of 10 whose best three are not the best three", helpful(&stored) != helpful(&best)))
}
