//! Followers: many follow one user at once, and then somebody pages through them all.

use std::collections::HashMap;

use bson::{Bson, Document, doc};

use super::{CLIENTS, Counts, DB, Race, together};
use crate::client::Client;
use crate::crash::read_all;
use crate::error::Result;
use crate::seeds::as_number;
use crate::seeds::outlier::Followers;

pub static ADD: Race = Race {
    name: "outlier-add",
    what: "640 adds to one user by 16 clients; threshold 100, batches of 100",
    by_hand: |port| add_by_hand(port).map(|(counts, _)| counts),
    declared: Some(|port| add_declared(port).map(|(counts, _)| counts)),
};

pub static PAGE: Race = Race {
    name: "outlier-page",
    what: "paging through what those adds stored, 30 at a time",
    by_hand: |port| {
        let (_, stored) = add_by_hand(port)?;
        let mut client = Client::connect(port)?;
        page(&stored, |number| HAND.page(&mut client, 1, number, PAGE_SIZE))
    },
    declared: Some(|port| {
        let (_, stored) = add_declared(port)?;
        let mut client = Client::connect(port)?;
        page(&stored, |number| {
            let slice = doc! { "followers": { "$slice": [number * PAGE_SIZE, PAGE_SIZE] } };
            let find = doc! { "find": Followers::USERS, "filter": { "_id": 1 }, "projection": slice };
            let user = read_all(&mut client, DB, &find)?;
            Ok(user.first().and_then(|user| user.get_array("followers").ok()).cloned().unwrap_or_default())
        })
    }),
};

static HAND: Followers = Followers { db: DB, threshold: 100, batch_size: 100 };
const EACH: usize = 40;
const PAGE_SIZE: i64 = 30;

fn add_by_hand(port: u16) -> Result<(Counts, Vec<i64>)> {
    let mut client = Client::connect(port)?;
    HAND.prepare(&mut client)?;
    let failed = add(port, |client, follower| HAND.add_follower(client, 1, follower))?;
    let mut stored = followers(&read_all(&mut client, DB, &doc! { "find": Followers::USERS })?);
    let sort = doc! { "batchNumber": 1 };
    let overflow = read_all(&mut client, DB, &doc! { "find": Followers::OVERFLOW, "sort": sort })?;
    stored.extend(followers(&overflow));
    let user = read_all(&mut client, DB, &doc! { "find": Followers::USERS })?;
    let count = user.first().map_or(0, |user| as_number(user.get("followerCount")));
    Ok((counts(failed, &stored, count), stored))
}

fn add_declared(port: u16) -> Result<(Counts, Vec<i64>)> {
    let mut client = Client::connect(port)?;
    let outlier = doc! { "outlier": { "array": "followers", "threshold": 100, "batchSize": 100 } };
    client.must(DB, &doc! { "create": Followers::USERS, "patterns": [outlier] })?;
    client.must(DB, &doc! { "insert": Followers::USERS, "documents": [{ "_id": 1, "followers": [] }] })?;
    let failed = add(port, |client, follower| {
        let push = doc! { "q": { "_id": 1 }, "u": { "$push": { "followers": follower } } };
        client.must(DB, &doc! { "update": Followers::USERS, "updates": [push] }).map(drop)
    })?;
    let users = read_all(&mut client, DB, &doc! { "find": Followers::USERS })?;
    let stored = followers(&users);
    let count = users.first().map_or(0, |user| as_number(user.get("followerCount")));
    Ok((counts(failed, &stored, count), stored))
}

/// Sixteen clients add followers of their own; gives how many adds failed.
fn add(port: u16, one: impl Fn(&mut Client, Bson) -> Result<()> + Sync) -> Result<u64> {
    let failed = together(port, CLIENTS, |client, number| {
        let mut failed = 0;
        for n in 0..EACH {
            failed += u64::from(one(client, Bson::Int32((number * EACH + n) as i32)).is_err());
        }
        Ok(failed)
    })?;
    Ok(failed.into_iter().sum())
}

fn followers(documents: &[Document]) -> Vec<i64> {
    let lists = documents.iter().filter_map(|document| document.get_array("followers").ok());
    lists.flatten().map(|follower| as_number(Some(follower))).collect()
}

fn counts(failed: u64, stored: &[i64], count: i64) -> Counts {
    let asked = (CLIENTS * EACH) as u64;
    let lost = (asked - failed).saturating_sub(stored.len() as u64);
    vec![
        ("adds failed", failed),
        ("acknowledged and lost", lost),
        ("count off by", count.abs_diff(stored.len() as i64)),
    ]
}

fn page(stored: &[i64], mut page: impl FnMut(i64) -> Result<Vec<Bson>>) -> Result<Counts> {
    let mut seen = HashMap::<i64, u64>::new();
    for number in 0..=stored.len() as i64 / PAGE_SIZE {
        for follower in page(number)? {
            *seen.entry(as_number(Some(&follower))).or_default() += 1;
        }
    }
    let never = stored.iter().filter(|follower| !seen.contains_key(follower)).count() as u64;
    let twice = seen.values().filter(|times| **times > 1).count() as u64;
    Ok(vec![("never on a page", never), ("on two pages", twice)])
}
