//! What kind of work a command is, and on which collection.

use espalier_value::ValueRef;

use crate::commands::Command;
use crate::request::Request;

/// As `currentOp`, `top` and the profiler tell commands apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Query,
    GetMore,
    Insert,
    Update,
    Remove,
    /// A command that reads documents: `aggregate`, `count`, `distinct`.
    Read,
    /// `findAndModify`.
    Modify,
    Command,
}

/// As `opLatencies` puts them together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Reads,
    Writes,
    Commands,
}

impl Kind {
    pub fn of(command: &str) -> Kind {
        match command {
            "find" => Kind::Query,
            "getMore" => Kind::GetMore,
            "insert" => Kind::Insert,
            "update" => Kind::Update,
            "delete" => Kind::Remove,
            "aggregate" | "count" | "distinct" => Kind::Read,
            "findAndModify" => Kind::Modify,
            _ => Kind::Command,
        }
    }

    /// The `op` of `currentOp` and of the profiler.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Query => "query",
            Kind::GetMore => "getmore",
            Kind::Insert => "insert",
            Kind::Update => "update",
            Kind::Remove => "remove",
            Kind::Read | Kind::Modify | Kind::Command => "command",
        }
    }

    pub fn class(self) -> Class {
        match self {
            Kind::Query | Kind::GetMore | Kind::Read => Class::Reads,
            Kind::Insert | Kind::Update | Kind::Remove | Kind::Modify => Class::Writes,
            Kind::Command => Class::Commands,
        }
    }
}

/// The commands whose argument is a collection, sorted.
static ON_COLLECTIONS: &[&str] = &[
    "aggregate",
    "collMod",
    "collStats",
    "convertToCapped",
    "count",
    "create",
    "createIndexes",
    "delete",
    "distinct",
    "drop",
    "dropIndexes",
    "find",
    "findAndModify",
    "insert",
    "killCursors",
    "listIndexes",
    "planCacheClear",
    "planCacheListFilters",
    "reIndex",
    "update",
    "validate",
];

/// The database and the collection that a command is about.
pub(crate) fn namespace<'a>(command: &Command, request: &Request<'a>) -> Option<(&'a str, &'a str)> {
    let collection = match command.name {
        "getMore" => request.body.get("collection"),
        name if ON_COLLECTIONS.binary_search(&name).is_ok() => Some(request.argument),
        _ => None,
    };
    match collection {
        Some(ValueRef::String(collection)) if !collection.is_empty() => Some((request.db, collection)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_its_commands_exist() {
        assert!(ON_COLLECTIONS.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ON_COLLECTIONS.iter().all(|name| crate::commands::find(name).is_some()));
    }
}
