//! A collection's options and identity.

use espalier_value::DocBuf;

#[derive(Clone, Debug, Default)]
pub struct CollectionOptions {
    pub capped: Option<Capped>,
    pub validator: Option<DocBuf>,
    pub validation_level: ValidationLevel,
    pub validation_action: ValidationAction,
    /// Everything as `listCollections` shows it, the typed fields above included.
    pub listed: DocBuf,
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
