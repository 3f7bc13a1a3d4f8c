//! Followers of a user: the first in the user's document, the others in overflow documents.

use bson::{Bson, DateTime, Document, doc};

use super::{as_number, find_one, insert, update_one};
use crate::client::Client;
use crate::error::{Result, err};

/// Collections and sizes.
pub struct Followers {
    pub db: &'static str,
    /// The most followers in the user's document.
    pub threshold: i64,
    /// Followers of an overflow document.
    pub batch_size: i64,
}

impl Followers {
    pub const USERS: &'static str = "users";
    pub const OVERFLOW: &'static str = "followerOverflow";

    /// The collections with the indexes that the text advises, and one user.
    pub fn prepare(&self, client: &mut Client) -> Result<()> {
        client.run(self.db, &doc! { "drop": Self::USERS })?;
        client.run(self.db, &doc! { "drop": Self::OVERFLOW })?;
        let user = doc! {
            "_id": 1, "username": "ada", "followers": [], "followerCount": 0, "hasOverflow": false, "overflowCount": 0,
        };
        insert(client, self.db, Self::USERS, vec![user])?;
        let flag = doc! { "key": { "hasOverflow": 1 }, "name": "hasOverflow_1" };
        client.must(self.db, &doc! { "createIndexes": Self::USERS, "indexes": [flag] })?;
        let batches =
            doc! { "key": { "userId": 1, "batchNumber": 1 }, "name": "userId_1_batchNumber_1", "unique": true };
        let created = doc! { "key": { "createdAt": 1 }, "name": "createdAt_1" };
        client.must(self.db, &doc! { "createIndexes": Self::OVERFLOW, "indexes": [batches, created] })?;
        Ok(())
    }

    pub fn add_follower(&self, client: &mut Client, user_id: i32, follower: Bson) -> Result<()> {
        let user = find_one(client, self.db, Self::USERS, doc! { "_id": user_id })?;
        let user = user.ok_or_else(|| err!("User not found"))?;
        if (user.get_array("followers")?.len() as i64) < self.threshold {
            let change = doc! { "$push": { "followers": follower }, "$inc": { "followerCount": 1 } };
            update_one(client, self.db, Self::USERS, doc! { "_id": user_id }, change)?;
            return Ok(());
        }
        self.handle_overflow(client, user_id, follower, &user)
    }

    fn handle_overflow(&self, client: &mut Client, user_id: i32, follower: Bson, user: &Document) -> Result<()> {
        let count = as_number(user.get("followerCount"));
        // Math.ceil((followerCount - THRESHOLD + 1) / BATCH_SIZE)
        let current = (count - self.threshold + 1 + self.batch_size - 1).div_euclid(self.batch_size);
        let by_batch = doc! { "userId": user_id, "batchNumber": current };
        let overflow = find_one(client, self.db, Self::OVERFLOW, by_batch.clone())?;
        let full = |overflow: &Document| {
            overflow.get_array("followers").is_ok_and(|followers| followers.len() as i64 >= self.batch_size)
        };
        if overflow.as_ref().is_none_or(full) {
            let new = if overflow.is_some() { current + 1 } else { current };
            let batch = doc! {
                "userId": user_id, "batchNumber": new, "followers": [follower], "createdAt": DateTime::now(),
            };
            insert(client, self.db, Self::OVERFLOW, vec![batch])?;
            let batches = if overflow.is_some() { 0 } else { 1 };
            let change =
                doc! { "$set": { "hasOverflow": true }, "$inc": { "followerCount": 1, "overflowCount": batches } };
            update_one(client, self.db, Self::USERS, doc! { "_id": user_id }, change)?;
        } else {
            update_one(client, self.db, Self::OVERFLOW, by_batch, doc! { "$push": { "followers": follower } })?;
            let change = doc! { "$inc": { "followerCount": 1 } };
            update_one(client, self.db, Self::USERS, doc! { "_id": user_id }, change)?;
        }
        Ok(())
    }

    /// `getFollowersPaginated`: pages are counted from 0.
    pub fn page(&self, client: &mut Client, user_id: i32, page: i64, size: i64) -> Result<Vec<Bson>> {
        let user = find_one(client, self.db, Self::USERS, doc! { "_id": user_id })?;
        let user = user.ok_or_else(|| err!("Cannot read properties of null"))?;
        let followers = user.get_array("followers")?;
        let skip = page * size;
        if skip + size <= followers.len() as i64 || !user.get_bool("hasOverflow").unwrap_or(false) {
            return Ok(slice(followers, skip, size));
        }
        let overflow_skip = (skip - self.threshold).max(0);
        let number = overflow_skip / self.batch_size + 1;
        let by_batch = doc! { "userId": user_id, "batchNumber": number };
        let Some(overflow) = find_one(client, self.db, Self::OVERFLOW, by_batch)? else { return Ok(Vec::new()) };
        Ok(slice(overflow.get_array("followers")?, overflow_skip % self.batch_size, size))
    }
}

fn slice(list: &[Bson], skip: i64, size: i64) -> Vec<Bson> {
    list.iter().skip(skip as usize).take(size as usize).cloned().collect()
}
