//! A collection's options and identity.

use std::sync::Arc;

use espalier_value::{ArrayBuf, Collation, DocBuf};

use crate::Layer;

#[derive(Clone, Debug, Default)]
pub struct CollectionOptions {
    pub capped: Option<Capped>,
    /// It is no collection but a pipeline on one.
    pub view: Option<ViewDefinition>,
    /// How whoever says nothing else compares strings in it; `None` is as bytes.
    pub collation: Option<Arc<Collation>>,
    pub validator: Option<DocBuf>,
    pub validation_level: ValidationLevel,
    pub validation_action: ValidationAction,
    /// Whether change streams can tell what a document was before (`changeStreamPreAndPostImages`).
    pub pre_images: bool,
    /// What a layer above the store has to do with it.
    pub layer: Option<Layer>,
    /// Everything as `listCollections` shows it, the typed fields above included.
    pub listed: DocBuf,
}

/// A pipeline with a name, read as if its results were a collection.
#[derive(Clone, Debug)]
pub struct ViewDefinition {
    /// A collection or a view of the same database.
    pub on: Box<str>,
    pub pipeline: ArrayBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capped {
    pub size_bytes: u64,
    /// 0: no limit on the number of documents.
    pub max_documents: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ValidationLevel {
    Off,
    #[default]
    Strict,
    /// Documents that already break the rule may be updated.
    Moderate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ValidationAction {
    #[default]
    Error,
    Warn,
}

#[derive(Clone, Debug)]
pub struct CollectionInfo {
    pub name: String,
    pub uuid: [u8; 16],
    pub options: CollectionOptions,
}
