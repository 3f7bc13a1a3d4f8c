//! `espalier tour`: a walk through the declared patterns on a private server. Every figure is measured while it is shown.
//!
//! A chapter is a file with one `static` [`Chapter`] and a line in [`CHAPTERS`]. It shows statements, measures them on plain
//! collections of the database `before`, declares the pattern in the database `after`, and measures the same there.

mod approximate;
mod archive;
mod bucket;
mod client;
mod computed;
mod guide;
mod outlier;
mod private;
mod reference;
mod screen;
mod shared;
mod shop;
mod subset;
mod table;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use signal_hook::consts::{SIGINT, SIGTERM};

use guide::Guide;
use private::Private;
use screen::Screen;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What is shown of one pattern.
pub struct Chapter {
    /// The pattern's name in a declaration.
    pub name: &'static str,
    pub title: &'static str,
    /// What goes wrong without it.
    pub problem: &'static str,
    pub tell: fn(&mut Guide) -> Result<()>,
}

/// In the order in which they are told.
static CHAPTERS: &[&Chapter] = &[
    &outlier::CHAPTER,
    &bucket::CHAPTER,
    &computed::CHAPTER,
    &subset::CHAPTER,
    &reference::CHAPTER,
    &approximate::CHAPTER,
    &archive::CHAPTER,
    &shared::CHAPTER,
];

/// What `espalier tour` was told.
#[derive(Debug)]
pub struct Tour {
    /// One chapter alone.
    pub pattern: Option<String>,
    pub keep: bool,
    pub seed: u64,
    /// How much data there is, as a share of the whole shop.
    pub scale: f64,
}

/// The names that `--pattern` takes.
pub fn names() -> Vec<&'static str> {
    CHAPTERS.iter().map(|chapter| chapter.name).collect()
}

pub fn run(tour: &Tour) -> Result<()> {
    let screen = Screen::new();
    let interrupted = Arc::new(AtomicBool::new(false));
    let server = Private::start(&interrupted, &[SIGINT, SIGTERM])?;
    let begun = Instant::now();
    screen.heading("Espalier: the patterns, measured here and now");
    screen.text(&format!(
        "A private server listens on {} with its data in {}. It holds a bike shop: products, reviews, customers, orders, \
         sensors and riders with their followers, made from seed {}. Writes are durable before they are answered.",
        server.uri(),
        server.folder().display(),
        tour.seed
    ));
    let told = |chapter: &&&Chapter| tour.pattern.as_ref().is_none_or(|name| *name == chapter.name);
    let mut guide = Guide::new(server.address(), screen, tour.seed, tour.scale, Arc::clone(&interrupted))?;
    for chapter in CHAPTERS.iter().filter(told) {
        guide.begin(chapter)?;
        (chapter.tell)(&mut guide)?;
    }
    let screen = guide.end();
    screen.heading(&format!("That was it, in {:.0} seconds", begun.elapsed().as_secs_f64().ceil()));
    screen.text(
        "docs/patterns/ has a page on each pattern: every option, what is stored, what is refused, what it costs.",
    );
    if tour.keep && !interrupted.load(Ordering::Relaxed) {
        screen.text(
            "The server goes on until Ctrl-C; its data goes with it. Look around, in the databases before and after:",
        );
        screen.code(&format!("mongosh \"{}after\"", server.uri()));
        server.wait();
    }
    server.stop()
}
