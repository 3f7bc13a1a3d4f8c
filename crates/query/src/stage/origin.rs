//! What a stage says about conditions on its output that could be tested on its input instead, where they may find an
//! index and spare the stage work.

/// Whether a condition may go ahead of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ahead {
    Never,
    /// If it asks for nothing but paths that [`super::Stage::origin`] knows: a document of the input that it refuses
    /// gives no document that it would accept, and one that it accepts none that it would refuse.
    Paths,
    /// The same, and each document of the input gives exactly one, so that a condition that can fail fails as before.
    Each,
    /// Any condition: the documents come out as they went in.
    Any,
}

/// Where the values at a path of a stage's output come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// From the stage.
    Made,
    /// From the same path.
    Same,
    /// From another path.
    Path(String),
    /// From another path, but null where that leads to nothing, and one of several values that are equal.
    Key(String),
}

impl Origin {
    /// The origin of a path whose first name is `field`, if the whole field comes from another one.
    pub fn renamed(path: &str, field: &str, from: &str) -> Origin {
        Origin::Path(format!("{from}{}", &path[field.len()..]))
    }
}

/// The first name of a path.
pub fn first(path: &str) -> &str {
    path.split_once('.').map_or(path, |(first, _)| first)
}
