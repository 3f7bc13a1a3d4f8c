//! History: what change streams tell. The log is the history; a commit's record holds the documents it wrote, and beside
//! them an annotation that says what that meant.

mod annotation;
mod catalog;
mod decode;
mod feed;

pub(crate) use annotation::{Notes, Teller};
pub(crate) use catalog::{
    created, dropped_collection, dropped_index, indexes_created, modified, modified_index, renamed,
};
pub(crate) use feed::EngineFeed;
