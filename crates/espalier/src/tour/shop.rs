//! The bike shop: names, products and reviews, at the skew of real ones, the same for the same seed.

use espalier_value::{DocBuf, ValueRef, doc};

/// 2026-04-15T00:00:00Z in milliseconds: the day on which the tour takes place.
pub const DAY: i64 = 1_776_211_200_000;
pub const HOUR_MS: i64 = 3_600_000;

/// Numbers that look random (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Few of the first are most of what comes: the first hundredth is about a fifth.
    pub fn skewed(&mut self, bound: usize) -> usize {
        let part = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((bound as f64 * part.powi(3)) as usize).min(bound.saturating_sub(1))
    }

    pub fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices.get(self.below(choices.len())).copied().unwrap_or("")
    }
}

const FIRST: &[&str] = &["Nikhil", "Dusan", "Gitte", "Moina", "Eduarda", "Ada", "Jonas", "Mei", "Omar", "Lucía"];
const LAST: &[&str] = &["Barot", "Sykora", "Olsen", "Potongia", "Almeida", "Byron", "Weber", "Lin", "Haddad", "Reyes"];
const MODELS: &[&str] = &["Mountain-100 Silver", "Road-250 Red", "Touring-1000 Blue", "Road Tire Tube", "HL Fork"];
const TITLES: &[&str] =
    &["Handles rough terrain", "Fit during packed dirt", "Drivetrain on rolling pavement", "Rack mounts"];
const CITIES: &[&str] = &["Lisbon", "Prague", "Aarhus", "Mumbai", "London", "Hamburg", "Taipei", "Beirut", "Sevilla"];

pub fn name(random: &mut Random) -> String {
    format!("{} {}", random.pick(FIRST), random.pick(LAST))
}

pub fn city(random: &mut Random) -> &'static str {
    random.pick(CITIES)
}

pub fn products(count: usize, random: &mut Random) -> Vec<DocBuf> {
    let product = |id: usize| {
        let name = format!("{}, {}", random.pick(MODELS), 38 + random.below(24));
        doc! { "_id": id as i32, "name": &name, "price": 399.0 + random.below(3_000) as f64 }
    };
    (0..count).map(product).collect()
}

/// Reviews of products, most of them of a few.
pub fn reviews(count: usize, products: usize, random: &mut Random) -> Vec<DocBuf> {
    (0..count)
        .map(|id| {
            let product = random.skewed(products);
            review(id, product, random)
        })
        .collect()
}

pub fn review(id: usize, product: usize, random: &mut Random) -> DocBuf {
    let rating = [5, 5, 5, 4, 4, 4, 4, 3, 2, 1][random.below(10)];
    doc! {
        "_id": id as i32, "productId": product as i32, "customerName": &name(random), "rating": rating,
        "title": random.pick(TITLES), "helpful": random.skewed(300) as i32,
        "text": "I have ridden it for three weeks now, in the city and outside, and it does what it should.",
        "createdAt": ValueRef::DateTime(DAY - (id as i64 % 10_000) * 60_000),
    }
}

pub fn customers(count: usize, random: &mut Random) -> Vec<DocBuf> {
    let customer = |id: usize| {
        let notes = "prefers delivery in the morning; has two bikes in for service every spring";
        doc! { "_id": id as i32, "name": &name(random), "city": city(random), "notes": notes }
    };
    (0..count).map(customer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_shop_and_few_products_have_most_reviews() {
        let make = |seed| reviews(2_000, 100, &mut Random::new(seed));
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        let product = |review: &DocBuf| review.as_raw().get("productId").map(|id| id.to_string());
        let first = make(1).iter().filter(|review| product(review).as_deref() == Some("0")).count();
        assert!(first > 200, "{first}");
    }
}
