//! Reviews of products that have their count, sums and best three: with the review itself, and a little later.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};

use super::{DB, Work, of_writer};
use crate::client::Client;
use crate::crash::ledger::Ledger;
use crate::crash::problems::Problems;
use crate::crash::session::{Session, Step, number, read_all};
use crate::error::Result;
use crate::random::Random;

const PRODUCTS: &str = "products";
const REVIEWS: &str = "reviews";
/// Few, so that writers meet; reviews of one more come without there ever being such a product.
const PRODUCTS_COUNT: i64 = 4;
const REVIEWS_MAX: usize = 250;
/// How long what follows later may take, on a machine that does much else.
const CAUGHT_UP_MAX: Duration = Duration::from_secs(30);

/// The product and the rating of each review, and (by the first writer) which products there are.
pub struct Reviews {
    writer: u64,
    reviews: Ledger<(i64, i64)>,
    products: Ledger<()>,
}

impl Reviews {
    pub fn new(writer: u64) -> Reviews {
        Reviews { writer, reviews: Ledger::new(writer), products: Ledger::new(writer) }
    }

    fn insert(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let (id, product, rating) = (self.reviews.fresh_id(), random.between(0, PRODUCTS_COUNT), random.between(0, 4));
        self.reviews.send(id, Some((product, rating)));
        let review = doc! { "_id": id, "productId": product, "rating": rating };
        session.expect(DB, &doc! { "insert": REVIEWS, "documents": [review] }, "n", 1)?;
        self.reviews.acknowledge();
        Ok(())
    }

    /// Several at once, of several products.
    fn insert_many(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let mut documents = Vec::new();
        for _ in 0..random.between(2, 20) {
            let (id, product, rating) =
                (self.reviews.fresh_id(), random.between(0, PRODUCTS_COUNT), random.between(0, 4));
            self.reviews.send(id, Some((product, rating)));
            documents.push(doc! { "_id": id, "productId": product, "rating": rating });
        }
        let count = documents.len() as u64;
        session.expect(DB, &doc! { "insert": REVIEWS, "documents": documents }, "n", count)?;
        self.reviews.acknowledge();
        Ok(())
    }

    /// Another rating, or another product.
    fn update(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, (product, rating))) = self.reviews.any(random) else { return Ok(()) };
        let moved = (product + 1) % (PRODUCTS_COUNT + 1);
        let (state, change) = match random.below(3) {
            0 => ((moved, rating), doc! { "productId": moved }),
            _ => ((product, (rating + 1) % 5), doc! { "rating": (rating + 1) % 5 }),
        };
        self.reviews.send(id, Some(state));
        let update = doc! { "q": { "_id": id }, "u": { "$set": change } };
        session.expect(DB, &doc! { "update": REVIEWS, "updates": [update] }, "nModified", 1)?;
        self.reviews.acknowledge();
        Ok(())
    }

    fn delete(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let Some((id, _)) = self.reviews.any(random) else { return Ok(()) };
        self.reviews.send(id, None);
        session.expect(DB, &doc! { "delete": REVIEWS, "deletes": [{ "q": { "_id": id }, "limit": 1 }] }, "n", 1)?;
        self.reviews.acknowledge();
        Ok(())
    }

    /// A product goes, or comes and finds its reviews there.
    fn toggle(&mut self, session: &mut Session, random: &mut Random) -> Step {
        let product = random.between(0, PRODUCTS_COUNT - 1);
        let is_there = self.products.known.contains_key(&product);
        self.products.send(product, (!is_there).then_some(()));
        let command = match is_there {
            true => doc! { "delete": PRODUCTS, "deletes": [{ "q": { "_id": product }, "limit": 1 }] },
            false => doc! { "insert": PRODUCTS, "documents": [{ "_id": product }] },
        };
        session.expect(DB, &command, "n", 1)?;
        self.products.acknowledge();
        Ok(())
    }
}

impl Work for Reviews {
    fn name(&self) -> &'static str {
        "reviews"
    }

    fn prepare(&mut self, client: &mut Client) -> Result<()> {
        if self.writer > 0 {
            return Ok(());
        }
        let (from, on) = (REVIEWS, doc! { "productId": "_id" });
        let fields = doc! {
            "n": { "$count": {} }, "sum": { "$sum": "$rating" }, "best": { "$max": "$rating" },
            "average": { "$avg": "$rating" }, "byRating": { "$countBy": "$rating" },
        };
        let computed = doc! { "from": from, "on": &on, "into": "now", "fields": &fields };
        let subset = doc! {
            "from": from, "on": &on, "into": "top", "sort": { "rating": -1 }, "limit": 3, "fields": ["rating"],
        };
        let later = doc! { "from": from, "on": on, "into": "later", "fields": fields, "freshness": "200ms" };
        let patterns = vec![doc! { "computed": computed }, doc! { "subset": subset }, doc! { "computed": later }];
        client.must(DB, &doc! { "create": PRODUCTS, "patterns": patterns })?;
        let products: Vec<Document> = (0..PRODUCTS_COUNT).map(|id| doc! { "_id": id }).collect();
        client.must(DB, &doc! { "insert": PRODUCTS, "documents": products })?;
        self.products.known.extend((0..PRODUCTS_COUNT).map(|id| (id, ())));
        Ok(())
    }

    fn step(&mut self, session: &mut Session, random: &mut Random) -> Step {
        match random.below(20) {
            _ if self.reviews.known.len() > REVIEWS_MAX => self.delete(session, random),
            0 if self.writer == 0 => self.toggle(session, random),
            0..2 => self.insert_many(session, random),
            2..12 => self.insert(session, random),
            12..16 => self.update(session, random),
            _ => self.delete(session, random),
        }
    }

    fn check(&mut self, client: &mut Client, problems: &mut Problems) -> Result<()> {
        let mut found = BTreeMap::new();
        let find = doc! { "find": REVIEWS, "filter": of_writer(self.writer), "batchSize": 10_000 };
        for review in read_all(client, DB, &find)? {
            let (Some(product), Some(rating)) = (number(&review, "productId"), number(&review, "rating")) else {
                problems.add(format!("not a review: {review}"));
                continue;
            };
            found.insert(review.get_i64("_id")?, (product, rating));
        }
        self.reviews.judge(REVIEWS, found, problems);
        if self.writer == 0 {
            let products = read_all(client, DB, &doc! { "find": PRODUCTS })?;
            let found = products.iter().filter_map(|product| Some((number(product, "_id")?, ()))).collect();
            self.products.judge(PRODUCTS, found, problems);
            for (product, summary) in summaries(client)? {
                summary.compare(&product, "now", true, |wrong| problems.add(wrong));
            }
        }
        Ok(())
    }

    fn settle(&mut self, client: &mut Client, problems: &mut Problems) -> Result<bool> {
        if self.writer > 0 {
            return Ok(false);
        }
        let since = Instant::now();
        loop {
            let mut wrong = Vec::new();
            for (product, summary) in summaries(client)? {
                summary.compare(&product, "later", false, |what| wrong.push(what));
            }
            if wrong.is_empty() {
                return Ok(false);
            }
            if since.elapsed() > CAUGHT_UP_MAX {
                wrong.into_iter().for_each(|wrong| problems.add(format!("not caught up: {wrong}")));
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn acknowledged(&self) -> u64 {
        self.reviews.acknowledged + self.products.acknowledged
    }
}

/// What the reviews of a product give, computed by the client.
#[derive(Default)]
struct Summary {
    /// Rating and `_id` of each.
    reviews: Vec<(i64, i64)>,
}

/// Every product with what it is to have; nobody writes meanwhile.
fn summaries(client: &mut Client) -> Result<Vec<(Document, Summary)>> {
    let mut all: BTreeMap<i64, Summary> = BTreeMap::new();
    for review in read_all(client, DB, &doc! { "find": REVIEWS, "batchSize": 10_000 })? {
        if let (Some(product), Some(rating), Some(id)) =
            (number(&review, "productId"), number(&review, "rating"), number(&review, "_id"))
        {
            all.entry(product).or_default().reviews.push((rating, id));
        }
    }
    let products = read_all(client, DB, &doc! { "find": PRODUCTS })?;
    let with = |product: Document| {
        let summary = number(&product, "_id").and_then(|id| all.remove(&id)).unwrap_or_default();
        (product, summary)
    };
    Ok(products.into_iter().map(with).collect())
}

impl Summary {
    fn compare(mut self, product: &Document, into: &str, top: bool, mut wrong: impl FnMut(String)) {
        let mut tell = |what: &str, has: Option<&Bson>, wanted: String| {
            let has = has.map_or("nothing".to_owned(), Bson::to_string);
            if has != wanted {
                let id = product.get("_id").map(Bson::to_string).unwrap_or_default();
                wrong(format!("the product {id} has {into}.{what}: {has}; its reviews give {wanted}"));
            }
        };
        let count = self.reviews.len() as i64;
        let sum: i64 = self.reviews.iter().map(|(rating, _)| rating).sum();
        let has = product.get_document(into).cloned().unwrap_or_default();
        let as_number = |name: &str| number(&has, name).map(Bson::Int64);
        tell("n", as_number("n").as_ref(), count.to_string());
        tell("sum", as_number("sum").as_ref(), sum.to_string());
        let best = self.reviews.iter().map(|(rating, _)| *rating).max().map_or(Bson::Null, Bson::Int64);
        let has_best = as_number("best").or_else(|| has.get("best").cloned());
        tell("best", has_best.as_ref(), best.to_string());
        let average = if count == 0 { Bson::Null } else { Bson::Double(sum as f64 / count as f64) };
        tell("average", has.get("average"), average.to_string());
        let by_rating = has.get_document("byRating").cloned().unwrap_or_default();
        for rating in 0..5 {
            let wanted = self.reviews.iter().filter(|(other, _)| *other == rating).count();
            let has = Bson::Int64(number(&by_rating, &rating.to_string()).unwrap_or(0));
            tell(&format!("byRating.{rating}"), Some(&has), wanted.to_string());
        }
        if top {
            self.reviews.sort_by_key(|(rating, id)| (-rating, *id));
            let best: Vec<i64> = self.reviews.iter().take(3).map(|(_, id)| *id).collect();
            let entries = product.get_array("top").cloned().unwrap_or_default();
            let ids: Vec<i64> = entries.iter().filter_map(|entry| number(entry.as_document()?, "_id")).collect();
            tell("top", Some(&Bson::String(format!("{ids:?}"))), Bson::String(format!("{best:?}")).to_string());
        }
    }
}
