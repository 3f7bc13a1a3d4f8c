//! The views of a product's page.

use espalier_value::{ArrayBuf, DocBuf, ValueRef, doc};

use super::guide::{AFTER, BEFORE, Guide, find_one, list, update_one};
use super::shop;
use super::table::{Table, grouped};
use super::{Chapter, Result};

pub static CHAPTER: Chapter = Chapter {
    name: "approximate",
    title: "counters hit thousands of times a second",
    problem: "Every view of a page counts, and every count rewrites the whole product. Counted in the application's memory, views \
              are lost with the process; summed up by a job, they count twice or not at all.",
    tell,
};

/// Enough for several flushes.
const VIEWS: usize = 300;
const TIMES: usize = 20;
const PARAGRAPHS: usize = 40;

fn tell(guide: &mut Guide) -> Result<()> {
    let mut random = guide.random();
    let text = "A frame of hydroformed aluminium, a drivetrain for long climbs, brakes that hold in the rain. ";
    let products: Vec<DocBuf> = shop::products(guide.scaled(200, 10), &mut random)
        .into_iter()
        .map(|mut product| {
            product.append("description", &text.repeat(PARAGRAPHS)).append("metrics", &doc! { "viewCount": 0 });
            product
        })
        .collect();
    guide.insert(BEFORE, "products", &products)?;
    guide.say(&format!("A product with a description of a page, and {} views of it:", grouped(VIEWS as u64)));
    guide.show(
        "db.products.updateOne({ _id: 0 }, { $inc: { \"metrics.viewCount\": 1 } })\n\
         db.products.findOne({ _id: 0 })",
    );
    let view = |_: usize| vec![update_one("products", 0, &doc! { "$inc": &doc! { "metrics.viewCount": 1 } })];
    let page = |_: usize| vec![find_one("products", 0)];
    let (view_before, page_before) = (guide.measure(BEFORE, VIEWS, view)?, guide.measure(BEFORE, TIMES, page)?);
    let fields: ArrayBuf = [ValueRef::String("metrics.viewCount")].into_iter().collect();
    let approximate = doc! { "fields": &fields, "flush": &doc! { "count": 100, "within": "5s" } };
    guide.declare(&doc! { "create": "products", "patterns": &list(&[doc! { "approximate": &approximate }]) })?;
    guide.insert(AFTER, "products", &products)?;
    guide.say(
        "The same statements. Views wait in a small document beside the product, which is rewritten once in a hundred:",
    );
    let (view_after, page_after) = (guide.measure(AFTER, VIEWS, view)?, guide.measure(AFTER, TIMES, page)?);
    Table::new()
        .writing("a view", &view_before, &view_after)
        .reading("the product", &page_before, &page_after)
        .show(guide.screen())?;
    guide.say("Reads are exact: they add what waits. Nothing that was acknowledged is lost when the power goes.");
    Ok(())
}
