//! Values: BSON in place, its order, numbers, paths, order-preserving keys, and the table of error codes.
//!
//! Pure: opens no file or socket, reads no clock. Bytes from outside are checked once by [`validate()`]; then
//! [`RawDoc`] lends fields from the bytes, [`DocBuf`] writes new ones, and [`Value`] is what a computation yields.

pub mod collation;
pub mod compare;
pub mod date;
pub mod decimal;
pub mod display;
mod doc;
pub mod error;
pub mod extjson;
pub mod key;
pub mod number;
pub mod oid;
pub mod path;
pub mod place;
mod raw;
mod types;
mod validate;
mod value;

pub use collation::{Collation, Collator};
pub use compare::compare;
pub use decimal::Decimal128;
pub use doc::{ArrayBuf, DocBuf, IndexName, begin_nested, end_nested, push_elem, push_value};
pub use error::{Code, Error, Result};
pub use oid::ObjectId;
pub use path::Path;
pub use raw::{Elem, Elems, RawArray, RawDoc, ValueRef};
pub use types::Type;
pub use validate::{DEPTH_MAX, document_len, validate};
pub use value::{OwnedValue, Value};
