//! `outlier`: a few documents with huge arrays. The logical array is the head, in the main document, followed by the
//! batches, in documents of their own, in the order of their numbers.
//!
//! Invariant: `count` is the number of elements stored, `batches` the number of batch documents stored, `flag` is
//! `batches > 0`, the head has at most `threshold` elements, a batch at most `batchSize` elements and `batchBytes`
//! bytes, no batch is empty, and head and batches in order are the logical array.
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `array` | required | path of the array |
//! | `threshold` | 1000 | most elements in the main document |
//! | `batchSize` | 1000 | most elements in a batch |
//! | `batchBytes` | 1 MiB | most bytes of elements in a batch, and in the head |
//! | `into` | `followerOverflow` for `followers` | collection of the batches |
//! | `parent` | `userId` for a collection `users` | field of a batch with the `_id` of its main document |
//! | `count` | `followerCount` for `followers` | field with the number of elements |
//! | `flag` | `hasOverflow` | field that says whether there are batches |
//! | `batches` | `overflowCount` | field with the number of batches |
//! | `read` | `whole` | `head`: a find that does not page gives the head only |

mod append;
mod check;
mod declare;
mod delete;
mod encode;
mod explain;
mod find;
mod indexes;
mod insert;
mod layout;
mod needs;
mod segments;
mod update;

use espalier_value::Path;

pub use declare::OUTLIER;

/// A declaration, read.
#[derive(Clone, Debug)]
pub struct Outlier {
    array: Path,
    threshold: usize,
    batch_size: usize,
    batch_bytes: usize,
    into: Box<str>,
    parent: Box<str>,
    count: Box<str>,
    flag: Box<str>,
    batches: Box<str>,
    read: Read,
}

/// What a find gives that asks for whole documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Read {
    Whole,
    Head,
}

/// The field of a batch with its place among the batches.
const NUMBER: &str = "batchNumber";
/// The field of a batch with the number of its elements, so that a page is found without reading what lies before it.
const SIZE: &str = "count";
/// The index of batches by their number.
const ORDER_INDEX: &str = "outlier_order";
const CREATED: &str = "createdAt";
