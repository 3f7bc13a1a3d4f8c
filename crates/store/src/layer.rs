//! What a layer above the store keeps with a collection: the store carries it, in the catalog and for every snapshot,
//! and does not look inside, but for the names it answers for beside the collection's own.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use espalier_value::{DocBuf, RawDoc, Result, ValueRef};

/// The fields of a collection's options that say a layer has to do with it: patterns declared on it, the pattern whose
/// documents it holds, the patterns that watch it.
pub const FIELDS: [&str; 3] = ["patterns", "patternOwner", "patternWatchers"];

/// A collection's part in a layer. Cheap to clone; read once, then remembered with the collection.
#[derive(Clone)]
pub struct Layer(Arc<Inner>);

struct Inner {
    options: DocBuf,
    names: Vec<Template>,
    read: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// Names that a collection's layer answers for where there is no collection of that name.
struct Template {
    /// The collection whose layer it is.
    into: Box<str>,
    prefix: Box<str>,
    suffix: Box<str>,
}

impl Template {
    /// Out of `{patterns: [{shared: {into, discriminator, name}}]}`.
    fn all(listed: RawDoc<'_>) -> Vec<Template> {
        let Some(ValueRef::Array(patterns)) = listed.get("patterns") else { return Vec::new() };
        let read = |declaration: ValueRef<'_>| {
            let shared = declaration.as_doc()?.get_doc("shared")?;
            // A collection that is on its way into another, or out of it, stands for no other name.
            if shared.get("joining").is_some() || shared.get("parting").is_some() {
                return None;
            }
            let placeholder = format!("{{{}}}", shared.get_str("discriminator")?);
            let (prefix, suffix) = shared.get_str("name")?.split_once(&placeholder)?;
            let into = shared.get_str("into")?.into();
            Some(Template { into, prefix: prefix.into(), suffix: suffix.into() })
        };
        patterns.iter().filter_map(read).collect()
    }

    fn fits(&self, name: &str) -> bool {
        let between = name.strip_prefix(&*self.prefix).and_then(|rest| rest.strip_suffix(&*self.suffix));
        between.is_some_and(|tenant| !tenant.is_empty()) && name != &*self.into
    }
}

impl Layer {
    /// From the options as they are listed; `None` if no layer has to do with the collection.
    pub fn of(listed: RawDoc<'_>) -> Option<Layer> {
        let concerned = listed.iter().any(|elem| FIELDS.contains(&elem.name()));
        let make = || Inner { options: DocBuf::from_raw(listed), names: Template::all(listed), read: OnceLock::new() };
        concerned.then(|| Layer(Arc::new(make())))
    }

    /// Whether it answers for names of which there is no collection.
    pub fn has_names(&self) -> bool {
        !self.0.names.is_empty()
    }

    /// The collection whose layer this is, if it answers for a name that is not its own.
    pub fn answers_for(&self, name: &str) -> Option<&str> {
        self.0.names.iter().find(|template| template.fits(name)).map(|template| &*template.into)
    }

    /// True if this is the very same.
    pub fn is(&self, other: &Layer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The collection's options as they are listed.
    pub fn options(&self) -> RawDoc<'_> {
        self.0.options.as_raw()
    }

    /// What the layer made of the options, made by `read` the first time.
    pub fn read<T: Send + Sync + 'static>(&self, read: impl FnOnce(RawDoc<'_>) -> Result<T>) -> Result<Arc<T>> {
        if let Some(there) = self.0.read.get() {
            return there
                .clone()
                .downcast()
                .map_err(|_| espalier_value::Error::internal("two layers on one collection"));
        }
        let made = Arc::new(read(self.options())?);
        // Whoever was first has read the same bytes.
        drop(self.0.read.set(made.clone()));
        Ok(made)
    }
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Layer").field(&self.0.options).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use espalier_value::doc;

    use super::*;

    #[test]
    fn is_read_once() {
        let layer = Layer::of(doc! { "patterns": 3 }.as_raw()).unwrap();
        let first: Arc<i32> = layer.read(|_| Ok(7)).unwrap();
        let second: Arc<i32> = layer.clone().read(|_| Ok(8)).unwrap();
        assert_eq!((*first, *second), (7, 7));
    }

    #[test]
    fn an_ordinary_collection_has_none() {
        assert!(Layer::of(doc! { "capped": true }.as_raw()).is_none());
    }
}
