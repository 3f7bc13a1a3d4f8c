//! Views: pipelines with a name. Reading one is running its stages before those of the command, on the collection
//! below it; `define` checks what may become a view.

mod define;
mod reading;

use std::sync::Arc;

use espalier_store::{Namespace, Transaction, ViewDefinition};
use espalier_value::{ArrayBuf, Code, Collation, DocBuf, Error, Result};

pub use define::{check, options};
pub use reading::{count_stages, distinct_stages, find_stages, with};

/// Where MongoDB keeps the definitions, and clients look for them.
pub const DEFINITIONS: &str = "system.views";

/// Most views that can stand on each other and still be read.
const READ_DEPTH_MAX: usize = 19;

/// What a view stands for.
pub struct Resolved {
    /// The collection below all views.
    pub below: Namespace,
    pub stages: ArrayBuf,
}

/// `None` for what is no view.
pub fn resolve(transaction: &dyn Transaction, ns: &Namespace) -> Result<Option<Resolved>> {
    if ns.collection() == DEFINITIONS {
        return definitions(transaction, ns).map(Some);
    }
    let Some(view) = transaction.view(ns)? else { return Ok(None) };
    let mut below = Namespace::new(ns.db(), &view.on);
    let mut pipelines = vec![view.pipeline];
    while let Some(next) = transaction.view(&below)? {
        if pipelines.len() >= READ_DEPTH_MAX {
            let message = "View depth too deep or view cycle detected; maximum depth is 20";
            return Err(Error::new(Code::ViewDepthLimitExceeded, message));
        }
        below = Namespace::new(ns.db(), &next.on);
        pipelines.push(next.pipeline);
    }
    let mut stages = ArrayBuf::new();
    for pipeline in pipelines.iter().rev() {
        pipeline.as_raw().iter().for_each(|stage| {
            stages.push(stage);
        });
    }
    Ok(Some(Resolved { below, stages }))
}

/// A view's definition, as the document that MongoDB keeps.
pub fn definition(db: &str, name: &str, view: &ViewDefinition, collation: &Option<Arc<Collation>>) -> DocBuf {
    let mut doc = DocBuf::new();
    doc.append("_id", &format!("{db}.{name}")).append("viewOn", &*view.on).append("pipeline", &view.pipeline);
    if let Some(collation) = collation {
        doc.append("collation", &collation.listed());
    }
    doc
}

/// The definitions of a database's views, as documents.
fn definitions(transaction: &dyn Transaction, ns: &Namespace) -> Result<Resolved> {
    let mut docs = ArrayBuf::new();
    for collection in transaction.collections(ns.db())? {
        if let Some(view) = &collection.options.view {
            docs.push(&definition(ns.db(), &collection.name, view, &collection.options.collation));
        }
    }
    let mut literal = DocBuf::new();
    literal.append("$literal", &docs);
    let mut stages = ArrayBuf::new();
    stages.push_doc(|stage| {
        stage.append("$documents", &literal);
    });
    Ok(Resolved { below: ns.clone(), stages })
}
