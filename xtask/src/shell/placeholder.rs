//! Stand-ins for what no two runs share: `<oid>`, `<cursor>`, `<now>`, `<uuid>`, `<ts>`, `<token>`.

use bson::Bson;

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// An ObjectId that the server generated.
    Oid,
    /// The id of an open cursor.
    Cursor,
    /// A date of about now.
    Now,
    /// A UUID that the server generated.
    Uuid,
    /// A timestamp of about now.
    Ts,
    /// A resume token of a change stream.
    Token,
    /// A value that the case says to ignore.
    Any,
}

const NAMES: [(Placeholder, &str); 7] = [
    (Placeholder::Oid, "oid"),
    (Placeholder::Cursor, "cursor"),
    (Placeholder::Now, "now"),
    (Placeholder::Uuid, "uuid"),
    (Placeholder::Ts, "ts"),
    (Placeholder::Token, "token"),
    (Placeholder::Any, "any"),
];

/// Marks the symbol that carries a placeholder; no real symbol of a test starts with a control character.
const MARK: char = '\u{1}';

/// A placeholder as a BSON value.
pub fn placeholder(of: Placeholder) -> Bson {
    let name = NAMES.iter().find(|(kind, _)| *kind == of).map_or("any", |(_, name)| name);
    Bson::Symbol(format!("{MARK}{name}"))
}

/// The placeholder of this name.
pub(super) fn placeholder_named(name: &str) -> Option<Bson> {
    NAMES.iter().find(|(_, known)| *known == name).map(|(kind, _)| placeholder(*kind))
}

/// The name of the placeholder that a value is, if it is one.
pub(super) fn placeholder_name(value: &Bson) -> Option<&str> {
    match value {
        Bson::Symbol(symbol) => symbol.strip_prefix(MARK),
        _ => None,
    }
}
