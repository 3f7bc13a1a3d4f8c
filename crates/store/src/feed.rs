//! What has happened, in order: the source of change streams.

use std::time::Instant;

use espalier_query::Interrupt;
use espalier_value::{DocBuf, Result};

use crate::Namespace;

/// Which events a feed is to tell.
#[derive(Clone, Debug)]
pub struct Watch {
    pub scope: Scope,
    /// What was stored, and not what a layer above the store announced in its place.
    pub raw: bool,
    /// Commits with a greater stamp only.
    pub after: u64,
}

/// What is watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    Collection(Namespace),
    Database(Box<str>),
    Everything,
}

impl Scope {
    pub fn holds(&self, ns: &Namespace) -> bool {
        match self {
            Scope::Collection(own) => own == ns,
            Scope::Database(db) => **db == *ns.db(),
            Scope::Everything => true,
        }
    }
}

/// A reader of the events after some moment: every one, in order of commits, none before it is safe from a power cut.
pub trait Feed: Send {
    /// The next event; `None` if there is none yet, or none was found by `until`. `ChangeStreamHistoryLost` if the
    /// place is no longer kept.
    fn next_event(&mut self, interrupt: &Interrupt, until: Option<Instant>) -> Result<Option<Event>>;

    /// Every event of commits up to this stamp has been told.
    fn stamp(&self) -> u64;
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// The commit's time.
    pub stamp: u64,
    /// The event's place within the commit.
    pub index: u32,
    /// Wall time in milliseconds.
    pub wall_ms: i64,
    /// The client's transaction that it was part of.
    pub transaction: Option<TransactionId>,
    /// The collection's UUID, where there is one.
    pub uuid: Option<[u8; 16]>,
    pub what: Happening,
}

/// What happened, to which namespace. A layer above the store announces its own in the same form.
#[derive(Clone, Debug)]
pub struct Happening {
    /// For `DropDatabase` the collection's name is empty.
    pub ns: Namespace,
    pub kind: EventKind,
    /// The `documentKey` of a document's event.
    pub key: Option<DocBuf>,
    /// The document after the event, if it is known.
    pub document: Option<DocBuf>,
    /// The document before the event, if it was kept.
    pub before: Option<DocBuf>,
    /// What an update did (`updateDescription`), or what a change of the catalog was (`operationDescription`).
    pub description: Option<DocBuf>,
    /// What a `Modify` found (`stateBeforeChange`).
    pub state_before: Option<DocBuf>,
    /// Where a `Rename` led.
    pub to: Option<Namespace>,
}

impl Happening {
    pub fn new(ns: Namespace, kind: EventKind) -> Happening {
        Happening { ns, kind, key: None, document: None, before: None, description: None, state_before: None, to: None }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    Insert,
    Update,
    Replace,
    Delete,
    Create,
    Drop,
    Rename,
    DropDatabase,
    CreateIndexes,
    DropIndexes,
    Modify,
}

impl EventKind {
    pub const ALL: [EventKind; 11] = [
        EventKind::Insert,
        EventKind::Update,
        EventKind::Replace,
        EventKind::Delete,
        EventKind::Create,
        EventKind::Drop,
        EventKind::Rename,
        EventKind::DropDatabase,
        EventKind::CreateIndexes,
        EventKind::DropIndexes,
        EventKind::Modify,
    ];

    /// As change streams call it.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Insert => "insert",
            EventKind::Update => "update",
            EventKind::Replace => "replace",
            EventKind::Delete => "delete",
            EventKind::Create => "create",
            EventKind::Drop => "drop",
            EventKind::Rename => "rename",
            EventKind::DropDatabase => "dropDatabase",
            EventKind::CreateIndexes => "createIndexes",
            EventKind::DropIndexes => "dropIndexes",
            EventKind::Modify => "modify",
        }
    }
}

/// Whose transaction a commit was.
#[derive(Clone, PartialEq, Debug)]
pub struct TransactionId {
    /// `{id: UUID, uid: …}`.
    pub lsid: DocBuf,
    pub number: i64,
}
