//! OP_QUERY: what drivers still send for their first `hello`, before they know that the server speaks OP_MSG.

use crate::bytes::{split_c_string, split_i32, split_u32};
use crate::document::split_document;
use crate::{WireError, op_code};

/// A parsed OP_QUERY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpQuery<'a> {
    pub flags: u32,
    /// `<database>.$cmd` for a command.
    pub full_collection_name: &'a str,
    pub number_to_skip: i32,
    pub number_to_return: i32,
    pub query: &'a [u8],
    pub return_fields: Option<&'a [u8]>,
}

impl<'a> OpQuery<'a> {
    /// Parses what follows the header.
    pub fn parse(payload: &'a [u8]) -> Result<Self, WireError> {
        const TRUNCATED: WireError = WireError::Truncated(op_code::OP_QUERY);
        let (flags, rest) = split_u32(payload).ok_or(TRUNCATED)?;
        let (name, rest) = split_c_string(rest).ok_or(TRUNCATED)?;
        let (number_to_skip, rest) = split_i32(rest).ok_or(TRUNCATED)?;
        let (number_to_return, rest) = split_i32(rest).ok_or(TRUNCATED)?;
        let (query, rest) = split_document(rest)?;
        let (return_fields, rest) = match rest {
            [] => (None, rest),
            _ => split_document(rest).map(|(document, after)| (Some(document), after))?,
        };
        if !rest.is_empty() {
            return Err(WireError::TrailingBytes(op_code::OP_QUERY));
        }
        let full_collection_name = std::str::from_utf8(name).map_err(|_| WireError::CollectionName)?;
        Ok(Self { flags, full_collection_name, number_to_skip, number_to_return, query, return_fields })
    }

    /// The database, if this is a command: `admin` of `admin.$cmd`.
    pub fn command_database(&self) -> Option<&'a str> {
        self.full_collection_name.strip_suffix(".$cmd").filter(|database| !database.is_empty())
    }
}
