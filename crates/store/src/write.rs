//! Typed writes and what came of them.

use std::sync::Arc;

use espalier_query::projection::Projection;
use espalier_query::sort::Sort;
use espalier_query::update::Update as UpdateSpec;
use espalier_query::{Context, Filter};
use espalier_value::{DocBuf, Error, RawDoc, Result, Value};

use crate::retry::{Statement, Statements};
use crate::{Happening, Hint, Namespace};

/// How to insert.
#[derive(Clone, Debug)]
pub struct Insert {
    pub ordered: bool,
    pub bypass_validation: bool,
    /// If it is a retryable write outside a transaction: which statement each document is.
    pub statements: Option<Statements>,
    pub context: Arc<Context>,
}

#[derive(Clone, Debug, Default)]
pub struct Inserted {
    pub inserted: u64,
    /// Position in the list and what was wrong with the document there, ascending.
    pub errors: Vec<(usize, Error)>,
}

/// One entry of an `update` command, or a `findAndModify` that updates.
#[derive(Clone, Debug)]
pub struct Update {
    pub filter: Arc<Filter>,
    pub update: Arc<UpdateSpec>,
    pub multi: bool,
    pub upsert: bool,
    /// Which of several matches a single update takes.
    pub sort: Option<Arc<Sort>>,
    pub hint: Option<Hint>,
    pub want: Want,
    /// Applied to the image.
    pub projection: Option<Arc<Projection>>,
    /// The `_id` of an upserted document that gets none from filter or update.
    pub new_id: [u8; 12],
    pub bypass_validation: bool,
    /// If it is a retryable write outside a transaction.
    pub statement: Option<Statement>,
    pub context: Arc<Context>,
}

impl Update {
    /// An update of one document at most that asks for nothing else.
    pub fn new(filter: Arc<Filter>, update: Arc<UpdateSpec>, context: Arc<Context>) -> Update {
        Update {
            filter,
            update,
            multi: false,
            upsert: false,
            sort: None,
            hint: None,
            want: Want::Nothing,
            projection: None,
            new_id: [0; 12],
            bypass_validation: false,
            statement: None,
            context,
        }
    }

    /// The same for one document that has been found: what led to it, and what is told of it, is not asked for again.
    pub fn narrowed(&self, filter: Arc<Filter>) -> Update {
        let one = Update::new(filter, self.update.clone(), self.context.clone());
        Update { want: self.want, bypass_validation: self.bypass_validation, ..one }
    }
}

/// Which image of the document to give back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Want {
    #[default]
    Nothing,
    Before,
    After,
}

#[derive(Clone, Debug, Default)]
pub struct Updated {
    pub matched: u64,
    pub modified: u64,
    pub upserted_id: Option<Value<'static>>,
    pub image: Option<DocBuf>,
}

/// Says what becomes of a document that it is shown, and may ask for the one beside it.
pub type Amend<'a> = dyn FnMut(RawDoc<'_>, &mut Beside<'_>) -> Result<Option<Amended>> + 'a;

/// The document with the same `_id` in another collection. Nobody else writes it until the amendment is over.
pub type Beside<'a> = dyn FnMut(&Namespace) -> Result<Option<DocBuf>> + 'a;

/// What becomes of a document that a layer rewrites in the place of a client's write.
#[derive(Debug)]
pub struct Amended {
    pub doc: DocBuf,
    /// What becomes of the one beside it, which was asked for.
    pub beside: Option<DocBuf>,
    /// What change streams are told instead.
    pub event: Happening,
    /// The client's statement, if it is a retryable write; it matched and modified one document.
    pub statement: Option<Statement>,
}

/// One entry of a `delete` command, or a `findAndModify` that removes.
#[derive(Clone, Debug)]
pub struct Delete {
    pub filter: Arc<Filter>,
    /// False: at most one.
    pub multi: bool,
    pub sort: Option<Arc<Sort>>,
    pub hint: Option<Hint>,
    pub want_image: bool,
    pub projection: Option<Arc<Projection>>,
    /// If it is a retryable write outside a transaction.
    pub statement: Option<Statement>,
    pub context: Arc<Context>,
}

impl Delete {
    /// A delete of one document at most that asks for nothing else.
    pub fn new(filter: Arc<Filter>, context: Arc<Context>) -> Delete {
        Delete {
            filter,
            multi: false,
            sort: None,
            hint: None,
            want_image: false,
            projection: None,
            statement: None,
            context,
        }
    }

    /// The same for one document that has been found, as [`Update::narrowed`].
    pub fn narrowed(&self, filter: Arc<Filter>) -> Delete {
        Delete { want_image: self.want_image, ..Delete::new(filter, self.context.clone()) }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Deleted {
    pub deleted: u64,
    pub image: Option<DocBuf>,
}

/// What a write did to one document: the one input of derivations, guards and change streams.
#[derive(Clone, Debug)]
pub struct Change {
    pub collection: Namespace,
    pub before: Option<DocBuf>,
    pub after: Option<DocBuf>,
}
