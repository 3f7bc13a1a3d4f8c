//! Strings: one file each operator, listed in order of name.

use super::operator::Operator;

pub(super) mod coerce;
mod concat;
mod index_of_bytes;
mod index_of_cp;
mod ltrim;
mod regex;
mod regex_find;
mod regex_find_all;
mod regex_match;
mod replace_all;
mod replace_one;
mod replacing;
mod rtrim;
mod split;
mod str_len_bytes;
mod str_len_cp;
mod strcasecmp;
mod substr_bytes;
mod substr_cp;
mod to_lower;
mod to_upper;
mod trim;
mod trimming;

pub(super) static ALL: &[&Operator] = &[
    &concat::CONCAT,
    &index_of_bytes::INDEX_OF_BYTES,
    &index_of_cp::INDEX_OF_CP,
    &ltrim::LTRIM,
    &regex_find::REGEX_FIND,
    &regex_find_all::REGEX_FIND_ALL,
    &regex_match::REGEX_MATCH,
    &replace_all::REPLACE_ALL,
    &replace_one::REPLACE_ONE,
    &rtrim::RTRIM,
    &split::SPLIT,
    &str_len_bytes::STR_LEN_BYTES,
    &str_len_cp::STR_LEN_CP,
    &strcasecmp::STRCASECMP,
    &substr_bytes::SUBSTR,
    &substr_bytes::SUBSTR_BYTES,
    &substr_cp::SUBSTR_CP,
    &to_lower::TO_LOWER,
    &to_upper::TO_UPPER,
    &trim::TRIM,
];
