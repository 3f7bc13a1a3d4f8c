//! A rider with very many followers.

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};

use super::guide::{AFTER, BEFORE, Guide, list, update_one};
use super::shop;
use super::table::{Table, grouped};
use super::{Chapter, Result};

pub static CHAPTER: Chapter = Chapter {
    name: "outlier",
    title: "a few documents with huge arrays",
    problem: "Most riders have a handful of followers, one has very many. In one document that one is slow for everybody: each \
              new follower rewrites the whole array, and at 16 MiB nobody can follow any more.",
    tell,
};

const RIDERS: usize = 500;
const MOST: usize = 60_000;
const TIMES: usize = 15;

fn tell(guide: &mut Guide) -> Result<()> {
    let most = guide.scaled(MOST, 2_000);
    let mut random = guide.random();
    let riders: Vec<DocBuf> = (0..RIDERS)
        .map(|id| {
            let count = if id == 0 { most } else { random.skewed(200) };
            let followers: ArrayBuf = (0..count).map(|at| ValueRef::Int32((id * 7 + at * 3) as i32)).collect();
            doc! { "_id": id as i32, "name": &shop::name(&mut random), "followers": &followers }
        })
        .collect();
    guide.insert(BEFORE, "riders", &riders)?;
    guide.say(&format!(
        "Rider 0 has {} followers. One more follows, and somebody looks at a page of twenty:",
        grouped(most as u64)
    ));
    guide.show(
        "db.riders.updateOne({ _id: 0 }, { $push: { followers: 4711 } })\n\
         db.riders.findOne({ _id: 0 }, { followers: { $slice: [1500, 20] } })",
    );
    let push = |at: usize| vec![update_one("riders", 0, &doc! { "$push": &doc! { "followers": at as i32 } })];
    let page = |at: usize| {
        let slice: ArrayBuf = [ValueRef::Int32(1_500 + at as i32), ValueRef::Int32(20)].into_iter().collect();
        let shown = doc! { "followers": &doc! { "$slice": &slice } };
        vec![
            doc! { "find": "riders", "filter": &doc! { "_id": 0 }, "projection": &shown, "limit": 1, "singleBatch": true },
        ]
    };
    let (push_before, page_before) = (guide.measure(BEFORE, TIMES, push)?, guide.measure(BEFORE, TIMES, page)?);
    let outlier = doc! { "array": "followers", "threshold": 1000 };
    guide.declare(&doc! { "create": "riders", "patterns": &list(&[doc! { "outlier": &outlier }]) })?;
    guide.insert(AFTER, "riders", &riders)?;
    guide
        .say("The same riders, the same statements. The array is stored a thousand at a time, and nobody has to know:");
    let (push_after, page_after) = (guide.measure(AFTER, TIMES, push)?, guide.measure(AFTER, TIMES, page)?);
    Table::new()
        .writing("one more follower", &push_before, &push_after)
        .reading("a page of followers", &page_before, &page_after)
        .show(guide.screen())?;
    guide.say("A page is read from two documents instead of one, and a follower costs the same at any length.");
    Ok(())
}
