//! The query operators, one file each, and their list.

use espalier_value::{Code, Error, Result, ValueRef};

use super::Node;
use super::parse::{Field, Parser};
use crate::registry::{Entry, State};

pub(super) mod all;
pub(super) mod always_false;
pub(super) mod always_true;
pub(super) mod and;
pub(super) mod bits;
pub(super) mod bits_all_clear;
pub(super) mod bits_all_set;
pub(super) mod bits_any_clear;
pub(super) mod bits_any_set;
pub(super) mod comment;
pub(super) mod comparison;
pub(super) mod elem_match;
pub(super) mod eq;
pub(super) mod exists;
pub(super) mod expr;
pub(super) mod gt;
pub(super) mod gte;
pub(super) mod in_;
pub(super) mod integer;
pub(super) mod json_schema;
pub(super) mod lt;
pub(super) mod lte;
pub(super) mod mod_;
pub(super) mod ne;
pub(super) mod nin;
pub(super) mod nor;
pub(super) mod not;
pub(super) mod options;
pub(super) mod or;
pub(super) mod prefix;
pub(super) mod regex;
pub(super) mod sample_rate;
pub(super) mod size;
pub(super) mod type_;
pub(super) mod unsupported;

/// One query operator.
#[derive(Clone, Copy)]
pub(crate) struct Operator {
    pub name: &'static str,
    pub place: Place,
    /// One sentence.
    pub doc: &'static str,
}

/// Where an operator stands, and what reads it there.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// `{a: {$gt: 1}}`
    Field(fn(&Field<'_>) -> Result<Node>),
    /// `{$or: […]}`; `None` if it puts no condition.
    Top(fn(ValueRef<'_>, &Parser<'_>) -> Result<Option<Node>>),
    /// Belongs to another operator (`$options` to `$regex`), which reads it; here it is only checked.
    Modifier(fn(&Field<'_>) -> Result<()>),
    FieldUnsupported,
    TopUnsupported,
}

/// Every operator, sorted by name.
pub(crate) static ALL: &[Operator] = &[
    all::ALL,
    always_false::ALWAYS_FALSE,
    always_true::ALWAYS_TRUE,
    and::AND,
    bits_all_clear::BITS_ALL_CLEAR,
    bits_all_set::BITS_ALL_SET,
    bits_any_clear::BITS_ANY_CLEAR,
    bits_any_set::BITS_ANY_SET,
    comment::COMMENT,
    elem_match::ELEM_MATCH,
    eq::EQ,
    exists::EXISTS,
    expr::EXPR,
    unsupported::GEO_INTERSECTS,
    unsupported::GEO_NEAR,
    unsupported::GEO_WITHIN,
    gt::GT,
    gte::GTE,
    in_::IN,
    json_schema::JSON_SCHEMA,
    lt::LT,
    lte::LTE,
    unsupported::MAX_DISTANCE,
    unsupported::MIN_DISTANCE,
    mod_::MOD,
    ne::NE,
    unsupported::NEAR,
    unsupported::NEAR_SPHERE,
    nin::NIN,
    nor::NOR,
    not::NOT,
    options::OPTIONS,
    or::OR,
    regex::REGEX,
    sample_rate::SAMPLE_RATE,
    size::SIZE,
    unsupported::TEXT,
    type_::TYPE,
    unsupported::WHERE,
    unsupported::WITHIN,
];

pub(crate) fn find(name: &str) -> Option<&'static Operator> {
    ALL.binary_search_by(|operator| operator.name.cmp(name)).ok().and_then(|at| ALL.get(at))
}

impl Operator {
    pub fn entry(&self) -> Entry {
        let state = match self.place {
            Place::FieldUnsupported | Place::TopUnsupported => State::KnownUnsupported,
            _ => State::Supported,
        };
        Entry { name: self.name, state, doc: self.doc }
    }

    pub fn unsupported(&self) -> Error {
        Error::new(Code::CommandNotSupported, format!("the query operator {} is not supported", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn the_list_is_sorted() {
        assert!(ALL.is_sorted_by_key(|operator| operator.name), "find() searches it by halves");
    }
}
