//! What the tests of the computed pattern share.

use espalier_value::{DocBuf, ValueRef};

use super::{Db, json};

pub const SUMMARY: &str = "{patterns: [{computed: {from: \"reviews\", on: {productId: \"_id\"}, into: \"reviewSummary\", \
    fields: {totalCount: {$count: {}}, averageRating: {$avg: \"$rating\", round: 1}, \
    ratingDistribution: {$countBy: \"$rating\"}, best: {$max: \"$rating\"}, worst: {$min: \"$rating\"}, \
    latest: {$first: \"$title\", sort: {at: -1}}, total: {$sum: \"$rating\"}}}}]}";

pub fn shop() -> Db {
    let db = Db::new();
    db.create("products", SUMMARY).unwrap();
    db
}

pub fn review(id: i32, product: i32, rating: &str) -> DocBuf {
    json(&format!("{{_id: {id}, productId: {product}, rating: {rating}, title: \"t{id}\", at: {id}}}"))
}

pub fn add(db: &Db, id: i32, product: i32, rating: &str) {
    assert_eq!(db.insert("reviews", &[review(id, product, rating)]).unwrap().inserted, 1);
}

/// The summary of a product, without the sums it is made of.
pub fn summary(db: &Db, product: i32) -> String {
    let doc = &db.find("products", &format!("{{_id: {product}}}"))[0];
    match doc.as_raw().get("reviewSummary") {
        Some(ValueRef::Document(summary)) => {
            let mut out = DocBuf::new();
            summary.iter().filter(|elem| elem.name() != "sums").for_each(|elem| {
                out.append_elem(elem);
            });
            ValueRef::Document(out.as_raw()).to_string()
        }
        other => panic!("{other:?}"),
    }
}

pub fn field(db: &Db, product: i32, name: &str) -> String {
    let doc = &db.find("products", &format!("{{_id: {product}}}"))[0];
    let summary = doc.as_raw().get_doc("reviewSummary").unwrap();
    summary.get(name).unwrap().to_string()
}
