//! Derivations beside the application code that they take the place of: reviews that a product sums up, and orders that
//! have their customer's city.
//!
//! On Espalier the pattern is declared and the client sends the one write; on MongoDB it sends what a careful application
//! does, in a transaction where several documents have to agree.

use bson::{Bson, Document, doc};

use super::load::Requests;
use super::session::Session;
use super::template::{INT32_MARK, INT64_MARK, Template};
use super::{DB, On, Row, Stream};
use crate::client::Client;
use crate::error::Result;
use crate::random::Random;

pub static REVIEWS: Row = Row {
    name: "reviews",
    what: "a review, with count, average, distribution and top three in its product: one insert with computed and subset; on \
           mongod (replica set) a transaction of insert, $inc with $push/$sort/$slice, $set of the average",
    on: On::Nothing,
    replica_set: true,
    connections: &[1, 8, 32],
    prepare: prepare_reviews,
    requests: reviews,
};

pub static REVIEWS_HOT: Row = Row {
    name: "reviews-hot",
    what: "the same, all of one product; on mongod the transaction is begun anew as long as others are in its way",
    on: On::Nothing,
    replica_set: true,
    connections: &[32],
    prepare: prepare_reviews,
    requests: hot_reviews,
};

pub static FOLLOW: Row = Row {
    name: "follow",
    what: "a customer moves, who has 10,000 orders with the city in them: one update with reference; on mongod the update and \
           an updateMany",
    on: On::Nothing,
    replica_set: false,
    connections: &[1],
    prepare: prepare_orders,
    requests: moves,
};

/// Products of each connection; no two connections meet, so that what is measured is not who gives way.
const OWN: u64 = 100;
const CONNECTIONS_MAX: u64 = 32;
const ORDERS: i32 = 10_000;

fn is_espalier(client: &mut Client) -> Result<bool> {
    Ok(client.must("admin", &doc! { "buildInfo": 1 })?.contains_key("espalier"))
}

fn prepare_reviews(client: &mut Client) -> Result<()> {
    for collection in ["products", "reviews"] {
        client.run(DB, &doc! { "drop": collection })?;
    }
    let mut products = doc! { "create": "products" };
    if is_espalier(client)? {
        let (from, on) = ("reviews", doc! { "productId": "_id" });
        let fields = doc! {
            "totalCount": { "$count": {} }, "averageRating": { "$avg": "$rating", "round": 1 },
            "ratingDistribution": { "$countBy": "$rating" },
        };
        let computed = doc! { "from": from, "on": &on, "into": "summary", "fields": fields };
        let subset = doc! {
            "from": from, "on": on, "into": "summary.top", "sort": { "helpful": -1 }, "limit": 3,
            "fields": ["customerName", "rating", "title", "helpful"],
        };
        products.insert("patterns", vec![doc! { "computed": computed }, doc! { "subset": subset }]);
    }
    client.must(DB, &products)?;
    let index = doc! { "key": { "productId": 1, "helpful": -1, "_id": 1 }, "name": "productId_1_helpful_-1__id_1" };
    client.must(DB, &doc! { "createIndexes": "reviews", "indexes": [index] })?;
    let documents: Vec<Bson> =
        (0..OWN * CONNECTIONS_MAX).map(|id| doc! { "_id": id as i32, "name": "Mountain-100" }.into()).collect();
    client.must(DB, &doc! { "insert": "products", "documents": documents })?;
    Ok(())
}

/// The statements that add a review, after each other.
struct Reviews {
    steps: Vec<Template>,
    random: Random,
    /// The first of the products, and how many.
    from: u64,
    products: u64,
    /// The next review's `_id`, and the transaction's number.
    number: i64,
    step: usize,
}

fn reviews(stream: Stream) -> Result<Box<dyn Requests>> {
    let from = (stream.connection % CONNECTIONS_MAX) * OWN;
    reviews_of(stream, from, OWN)
}

fn hot_reviews(stream: Stream) -> Result<Box<dyn Requests>> {
    reviews_of(stream, 0, 1)
}

fn reviews_of(stream: Stream, from: u64, products: u64) -> Result<Box<dyn Requests>> {
    let review = doc! {
        "_id": INT64_MARK, "productId": INT32_MARK, "customerName": "Eduarda Almeida", "rating": 4,
        "title": "Handles rough terrain with confidence", "helpful": INT32_MARK,
    };
    let insert = doc! { "insert": "reviews", "documents": [review] };
    let concern = doc! { "w": 1, "j": false };
    let mut steps = Vec::new();
    if stream.is_espalier {
        let mut insert = insert;
        insert.insert("writeConcern", concern);
        steps.push(Template::new(&insert)?.expecting(2, 1, 0)?);
    } else {
        let session = Session::of(&stream, products as u16);
        let sign = |command: Document, start: bool| session.sign(command, start);
        let top = doc! {
            "_id": INT64_MARK, "customerName": "Eduarda Almeida", "rating": 4,
            "title": "Handles rough terrain with confidence", "helpful": INT32_MARK,
        };
        let push = doc! { "$each": [top], "$sort": { "helpful": -1, "_id": 1 }, "$slice": 3 };
        let inc = doc! { "summary.totalCount": 1, "summary.sum": 4, "summary.ratingDistribution.4": 1 };
        let counts = doc! {
            "q": { "_id": INT32_MARK }, "u": { "$inc": inc, "$push": { "summary.top": push } },
        };
        let mean = doc! { "$round": [{ "$divide": ["$summary.sum", "$summary.totalCount"] }, 1] };
        let average = doc! { "q": { "_id": INT32_MARK }, "u": [{ "$set": { "summary.averageRating": mean } }] };
        let update = |update: Document| doc! { "update": "products", "updates": [update] };
        let commit = doc! { "commitTransaction": 1, "writeConcern": concern };
        steps.push(Template::new(&sign(insert, true))?.expecting(2, 2, 0)?);
        steps.push(Template::new(&sign(update(counts), false))?.expecting(2, 2, 0)?);
        steps.push(Template::new(&sign(update(average), false))?.expecting(1, 1, 0)?);
        steps.push(Template::on("admin", &sign(commit, false))?.expecting(0, 1, 0)?);
    }
    let step = steps.len();
    let number = ((stream.connection + 1) as i64) << 32;
    Ok(Box::new(Reviews { steps, random: stream.random, from, products, number, step }))
}

impl Requests for Reviews {
    fn next(&mut self) -> &[u8] {
        if self.step == self.steps.len() {
            self.step = 0;
            self.number += 1;
            let product = (self.from + self.random.below(self.products)) as i32;
            let helpful = self.random.below(10_000) as i32;
            // Which mark is which: the review has product and votes, the counts have the product and then the votes.
            for (at, template) in self.steps.iter_mut().enumerate() {
                template.set_all_int64s(self.number);
                match at {
                    0 | 1 => {
                        template.set_int32(0, product);
                        template.set_int32(1, helpful);
                    }
                    2 => template.set_int32(0, product),
                    _ => {}
                }
            }
        }
        self.step += 1;
        self.steps[self.step - 1].bytes()
    }

    fn operations(&self) -> u64 {
        u64::from(self.step == self.steps.len())
    }

    fn begins_anew(&mut self, reply: &Document) -> bool {
        self.step = self.steps.len();
        let labels = reply.get_array("errorLabels");
        labels.is_ok_and(|labels| labels.iter().any(|label| label.as_str() == Some("TransientTransactionError")))
    }
}

fn prepare_orders(client: &mut Client) -> Result<()> {
    for collection in ["orders", "customers"] {
        client.run(DB, &doc! { "drop": collection })?;
    }
    let mut orders = doc! { "create": "orders" };
    let is_espalier = is_espalier(client)?;
    if is_espalier {
        let reference = doc! {
            "from": "customers", "on": { "customerId": "_id" }, "into": "customer", "fields": ["name", "city"],
        };
        orders.insert("patterns", vec![doc! { "reference": reference }]);
    }
    client.must(DB, &orders)?;
    let index = doc! { "key": { "customerId": 1 }, "name": "customerId_1" };
    client.must(DB, &doc! { "createIndexes": "orders", "indexes": [index] })?;
    client.must(DB, &doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "Ada", "city": 0 }] })?;
    for from in (0..ORDERS).step_by(1_000) {
        let order = |id: i32| {
            let mut order = doc! {
                "_id": id, "customerId": 1, "total": 19.5, "items": ["MTB-100", "TT-R100"],
                "note": "leave it with the neighbours if nobody is at home, please",
            };
            if !is_espalier {
                order.insert("customer", doc! { "name": "Ada", "city": 0 });
            }
            Bson::from(order)
        };
        let documents: Vec<Bson> = (from..from + 1_000).map(order).collect();
        client.must(DB, &doc! { "insert": "orders", "documents": documents })?;
    }
    Ok(())
}

struct Moves {
    steps: Vec<Template>,
    city: i32,
    step: usize,
}

fn moves(stream: Stream) -> Result<Box<dyn Requests>> {
    let concern = doc! { "w": 1, "j": false };
    let update = |collection: &str, update: Document| {
        doc! { "update": collection, "updates": [update], "writeConcern": &concern }
    };
    let customer = doc! { "q": { "_id": 1 }, "u": { "$set": { "city": INT32_MARK } } };
    let mut steps = vec![Template::new(&update("customers", customer))?.expecting(1, 0, 0)?];
    if !stream.is_espalier {
        let orders = doc! { "q": { "customerId": 1 }, "u": { "$set": { "customer.city": INT32_MARK } }, "multi": true };
        steps.push(Template::new(&update("orders", orders))?.expecting(1, 0, 0)?);
    }
    // Another city in every run, or nothing would change.
    let city = (stream.run as i32) << 16;
    let step = steps.len();
    Ok(Box::new(Moves { steps, city, step }))
}

impl Requests for Moves {
    fn next(&mut self) -> &[u8] {
        if self.step == self.steps.len() {
            self.step = 0;
            self.city += 1;
            self.steps.iter_mut().for_each(|template| template.set_int32(0, self.city));
        }
        self.step += 1;
        self.steps[self.step - 1].bytes()
    }

    fn operations(&self) -> u64 {
        u64::from(self.step == self.steps.len())
    }
}
