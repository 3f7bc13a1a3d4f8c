//! The notes that a source has of the collections whose patterns watch it, and the refusal of circles.

use std::sync::Arc;

use espalier_store::{CollectionOptions, Namespace, Transaction};
use espalier_value::{ArrayBuf, Code, Error, RawDoc, Result, ValueRef};

use super::Derivation;
use crate::bson::without;
use crate::declare::with_listed;
use crate::roles::Roles;

/// The field of a source's options with the names of those who watch it.
pub(super) const WATCHERS: &str = "patternWatchers";
const IMAGES: &str = "patternImages";

/// The collections that watch one with these options.
pub fn watchers(options: RawDoc<'_>) -> Vec<Box<str>> {
    match options.get(WATCHERS) {
        Some(ValueRef::Array(list)) => list.iter().filter_map(|name| name.as_str().map(Into::into)).collect(),
        _ => Vec::new(),
    }
}

/// Notes on every source that this collection watches it; a source that is not there is made.
pub(crate) fn register(tx: &mut dyn Transaction, ns: &Namespace, derived: &[Arc<dyn Derivation>]) -> Result<()> {
    for derivation in derived {
        let source = Namespace::new(ns.db(), derivation.source());
        if tx.view(&source)?.is_some() {
            let message = format!("patterns: {source} is a view; a pattern needs the collection itself as its source");
            return Err(Error::new(Code::InvalidOptions, message));
        }
        if let Some(layer) = tx.layer(&source)?
            && let Some(layout) = Roles::of(tx, &source)?.and_then(|roles| roles.layout.clone())
            && (layout.is_alone() || layout.physical().is_some() || layer.answers_for(source.collection()).is_some())
        {
            let message = format!(
                "patterns: {source} is kept by the pattern 'shared', whose documents are written under many names and \
                 cannot be the source of a pattern"
            );
            return Err(Error::new(Code::InvalidOptions, message));
        }
        if let Some((of, pattern)) = Roles::of(tx, &source)?.and_then(|roles| roles.owner.clone()) {
            let message = format!(
                "patterns: {source} holds documents of the pattern '{pattern}' on {of}, which nobody is told of; name {of} \
                 as the source"
            );
            return Err(Error::new(Code::InvalidOptions, message));
        }
        change(tx, &source, true, derivation.within().is_some(), |names| {
            if !names.iter().any(|name| **name == *ns.collection()) {
                names.push(ns.collection().into());
            }
        })?;
    }
    Ok(())
}

/// Takes the notes away from sources that none of the derivations left reads.
pub(crate) fn unregister(
    tx: &mut dyn Transaction,
    ns: &Namespace,
    gone: &[Arc<dyn Derivation>],
    left: &[Arc<dyn Derivation>],
) -> Result<()> {
    for derivation in gone.iter().filter(|gone| !left.iter().any(|left| left.source() == gone.source())) {
        let source = Namespace::new(ns.db(), derivation.source());
        change(tx, &source, false, false, |names| names.retain(|name| **name != *ns.collection()))?;
    }
    Ok(())
}

fn change(
    tx: &mut dyn Transaction,
    source: &Namespace,
    make: bool,
    images: bool,
    change: impl FnOnce(&mut Vec<Box<str>>),
) -> Result<()> {
    let there = tx.collection(source)?;
    if there.is_none() && !make {
        return Ok(());
    }
    let options = there.as_ref().map(|info| info.options.clone()).unwrap_or_default();
    let before = watchers(options.listed.as_raw());
    let mut names = before.clone();
    change(&mut names);
    let had = has_images(options.listed.as_raw());
    let changed = with_watchers(&options, &names, images || had);
    match there {
        None => tx.create(source, &changed),
        Some(_) if names == before && (had || !images) => Ok(()),
        Some(_) => tx.set_options(source, &changed),
    }
}

/// Whether the log is to have what documents were before they changed, for derivations that follow later.
pub(crate) fn has_images(options: RawDoc<'_>) -> bool {
    matches!(options.get(IMAGES), Some(ValueRef::Bool(true)))
}

fn with_watchers(options: &CollectionOptions, names: &[Box<str>], images: bool) -> CollectionOptions {
    let mut listed = without(options.listed.as_raw(), &[WATCHERS, IMAGES]);
    let images = images && !names.is_empty();
    if !names.is_empty() {
        let list: ArrayBuf = names.iter().map(|name| ValueRef::String(name)).collect();
        listed.append(WATCHERS, &list);
    }
    if images {
        listed.append(IMAGES, true);
    }
    let own = listed.as_raw().get_doc("changeStreamPreAndPostImages").and_then(|own| own.get("enabled"));
    let pre_images = images || matches!(own, Some(ValueRef::Bool(true)));
    CollectionOptions { pre_images, ..with_listed(options, listed) }
}

/// New options for a source: who watches it is not for clients to say.
pub(crate) fn with_watchers_of(old: RawDoc<'_>, options: &CollectionOptions) -> CollectionOptions {
    let names = watchers(old);
    if names.is_empty() && watchers(options.listed.as_raw()).is_empty() {
        return options.clone();
    }
    with_watchers(options, &names, has_images(old))
}

/// Refuses derivations that would, by way of others, change what they are made of.
pub(crate) fn check_cycles(tx: &dyn Transaction, ns: &Namespace, derived: &[Arc<dyn Derivation>]) -> Result<()> {
    for first in derived {
        let mut way: Vec<(Namespace, Arc<dyn Derivation>)> = vec![(ns.clone(), first.clone())];
        let mut next = 0;
        while let Some((at, derivation)) = way.get(next).cloned() {
            next += 1;
            for (target, other) in after(tx, &at, &*derivation, ns, derived)? {
                if target == *ns && Arc::ptr_eq(&other, first) {
                    let message = format!(
                        "patterns: '{}' on {ns} from '{}' would change the documents it is made of, by way of '{}' on \
                         {at}; a circle of patterns is refused",
                        first.kind(),
                        first.source(),
                        derivation.kind()
                    );
                    return Err(Error::new(Code::InvalidOptions, message));
                }
                if !way.iter().any(|(ns, known)| *ns == target && Arc::ptr_eq(known, &other)) {
                    way.push((target, other));
                }
            }
        }
    }
    Ok(())
}

/// The derivations that read what this one writes to the documents of `at`.
fn after(
    tx: &dyn Transaction,
    at: &Namespace,
    derivation: &dyn Derivation,
    declared_on: &Namespace,
    declared: &[Arc<dyn Derivation>],
) -> Result<Vec<(Namespace, Arc<dyn Derivation>)>> {
    let writes: Vec<&str> = derivation.owns().iter().map(|path| path.first()).collect();
    let mut out = Vec::new();
    let own_roles = Roles::of(tx, at)?.unwrap_or_default();
    let mut targets: Vec<Namespace> =
        own_roles.watchers.iter().map(|watcher| Namespace::new(at.db(), watcher)).collect();
    targets.push(declared_on.clone());
    targets.push(at.clone());
    targets.dedup();
    for target in targets {
        // The declarations that are asked for take the place of those that are there.
        let theirs = match target == *declared_on {
            true => declared.to_vec(),
            false => Roles::of(tx, &target)?.map(|roles| roles.derived.clone()).unwrap_or_default(),
        };
        for other in theirs {
            let reads = target.db() == at.db()
                && other.source() == at.collection()
                && writes.iter().any(|name| other.reads().has(name));
            let depends = target == *at
                && !std::ptr::addr_eq(Arc::as_ptr(&other), derivation)
                && other.depends().iter().any(|name| writes.contains(name));
            if (reads || depends) && !out.iter().any(|(ns, known)| *ns == target && Arc::ptr_eq(known, &other)) {
                out.push((target.clone(), other));
            }
        }
    }
    Ok(out)
}
