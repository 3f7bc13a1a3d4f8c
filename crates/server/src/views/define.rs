//! What may become a view: its pipeline must parse and write nothing, and it must not stand on itself.

use std::collections::HashSet;
use std::sync::Arc;

use espalier_query::Context;
use espalier_query::expression::Scope;
use espalier_query::stage::Pipeline;
use espalier_store::{CollectionOptions, Namespace, Transaction, ViewDefinition};
use espalier_value::{Code, Collation, Error, RawArray, RawDoc, Result, ValueRef};

use crate::reply::build;

/// Most views that can stand on each other.
const DEPTH_MAX: usize = 20;

/// The options of a view, as they are kept and listed.
pub fn options(view: ViewDefinition, collation: Option<Arc<Collation>>) -> CollectionOptions {
    let listed = build(|doc| {
        doc.append("viewOn", &*view.on).append("pipeline", &view.pipeline);
        if let Some(collation) = &collation {
            doc.append("collation", &collation.listed());
        }
    });
    CollectionOptions { view: Some(view), collation, listed, ..CollectionOptions::default() }
}

/// Refuses a definition that cannot be.
pub fn check(
    ns: &Namespace,
    view: &ViewDefinition,
    collation: &Option<Arc<Collation>>,
    transaction: &dyn Transaction,
) -> Result<()> {
    if view.on.is_empty() {
        return Err(Error::bad_value("'viewOn' cannot be empty"));
    }
    Namespace::checked(ns.db(), &view.on)
        .map_err(|_| Error::new(Code::InvalidNamespace, format!("invalid name for 'viewOn': {}", view.on)))?;
    check_pipeline(ns, view.pipeline.as_raw(), collation)?;
    let mut path = vec![ns.collection().to_string()];
    let mut seen = HashSet::new();
    for name in references(view) {
        check_collation(ns, &Namespace::new(ns.db(), &name), collation, transaction)?;
        follow(ns, &name, transaction, &mut path, &mut seen)?;
    }
    Ok(())
}

/// Views that read each other compare strings in one way: there is one collation in a pipeline.
fn check_collation(
    view: &Namespace,
    below: &Namespace,
    collation: &Option<Arc<Collation>>,
    transaction: &dyn Transaction,
) -> Result<()> {
    match transaction.collection(below)? {
        Some(info) if info.options.view.is_some() && info.options.collation != *collation => Err(Error::new(
            Code::OptionNotSupportedOnView,
            format!("View {view} has conflicting collation with view {below}"),
        )),
        _ => Ok(()),
    }
}

fn check_pipeline(ns: &Namespace, stages: RawArray<'_>, collation: &Option<Arc<Collation>>) -> Result<()> {
    let names = stages.iter().filter_map(ValueRef::as_doc).filter_map(RawDoc::first).map(|first| first.name());
    for (at, name) in names.enumerate() {
        if matches!(name, "$out" | "$merge") {
            let message = format!(
                "Invalid pipeline for view {ns} :: caused by :: The aggregation stage {name} in location {at} of the \
                 pipeline cannot be used in the view definition of {ns} because it writes to disk"
            );
            return Err(Error::new(Code::OptionNotSupportedOnView, message));
        }
    }
    let context = Context::default().with_collation(collation.clone());
    Pipeline::parse(stages, &Scope::of(&context), &context).map(|_| ())
}

/// Goes down all collections and views that a view reads. `path` is how the walk came here.
fn follow(
    view: &Namespace,
    name: &str,
    transaction: &dyn Transaction,
    path: &mut Vec<String>,
    seen: &mut HashSet<String>,
) -> Result<()> {
    if name == view.collection() {
        let message = format!("View cycle detected: {} => {name}", path.join(" => "));
        return Err(Error::new(Code::GraphContainsCycle, message));
    }
    let Some(next) = transaction.view(&Namespace::new(view.db(), name))? else { return Ok(()) };
    if path.len() >= DEPTH_MAX {
        let message = format!("View depth limit exceeded; maximum depth is {DEPTH_MAX}");
        return Err(Error::new(Code::ViewDepthLimitExceeded, message));
    }
    // Whatever is below a view that was passed on another way has been looked at; only a longer way is news.
    if !seen.insert(format!("{} {name}", path.len())) {
        return Ok(());
    }
    path.push(name.to_string());
    for name in references(&next) {
        follow(view, &name, transaction, path, seen)?;
    }
    path.pop();
    Ok(())
}

/// The collections and views that a view reads.
fn references(view: &ViewDefinition) -> Vec<String> {
    let mut names = vec![view.on.to_string()];
    in_stages(view.pipeline.as_raw(), &mut names);
    names
}

fn in_stages(stages: RawArray<'_>, names: &mut Vec<String>) {
    for stage in stages.iter().filter_map(ValueRef::as_doc).filter_map(RawDoc::first) {
        match (stage.name(), stage.value()) {
            ("$lookup" | "$graphLookup", ValueRef::Document(spec)) => {
                names.extend(spec.get_str("from").map(str::to_string));
                inner(spec.get("pipeline"), names);
            }
            ("$unionWith", ValueRef::String(name)) => names.push(name.to_string()),
            ("$unionWith", ValueRef::Document(spec)) => {
                names.extend(spec.get_str("coll").map(str::to_string));
                inner(spec.get("pipeline"), names);
            }
            ("$facet", ValueRef::Document(spec)) => spec.iter().for_each(|elem| inner(Some(elem.value()), names)),
            _ => {}
        }
    }
}

fn inner(stages: Option<ValueRef<'_>>, names: &mut Vec<String>) {
    if let Some(ValueRef::Array(stages)) = stages {
        in_stages(stages, names);
    }
}
