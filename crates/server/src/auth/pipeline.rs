//! What a pipeline needs: `find` on everything it reads, and the writes of `$out` and `$merge`.

use espalier_value::{RawArray, RawDoc, ValueRef};

use super::action::Action;
use super::names::UserName;
use super::rights::Rights;

/// Nested deeper, a pipeline is refused when it is parsed.
const DEPTH_MAX: usize = 100;

/// Whether the rights are enough for a pipeline on a collection (`None`: on a database). `bypass` asks to skip validation.
pub fn may_run(db: &str, collection: Option<&str>, stages: RawArray<'_>, bypass: bool, rights: &Rights) -> bool {
    let first = stages.get(0).and_then(ValueRef::as_doc).and_then(RawDoc::first);
    let source = match (first.map(|elem| (elem.name(), elem.value())), collection) {
        (Some(("$collStats", _)), Some(name)) => rights.on_namespace(db, name, Action::CollStats),
        (Some(("$indexStats", _)), Some(name)) => rights.on_namespace(db, name, Action::IndexStats),
        (Some(("$planCacheStats", _)), Some(name)) => rights.on_namespace(db, name, Action::PlanCacheRead),
        (Some(("$currentOp", spec)), None) => {
            let everybody = spec.as_doc().is_some_and(|doc| is_true(doc, "allUsers"));
            !everybody && rights.is_authenticated() || rights.on_cluster(Action::Inprog)
        }
        (Some(("$listLocalSessions" | "$listSessions", spec)), _) => {
            let spec = spec.as_doc().unwrap_or(RawDoc::EMPTY);
            let is_own = |user: ValueRef<'_>| {
                UserName::parse(user, "")
                    .is_ok_and(|user| user.to_string() == rights.owner().map_or("", |own| &own.name))
            };
            // One's own sessions are the default, and may be asked for by name.
            let own = !is_true(spec, "allUsers")
                && spec.iter().filter(|elem| elem.name() == "users").all(|elem| match elem.value() {
                    ValueRef::Array(users) => users.iter().all(is_own),
                    _ => true,
                });
            own && rights.is_authenticated() || rights.on_cluster(Action::ListSessions)
        }
        (Some(("$changeStream", spec)), _) => {
            let cluster = spec.as_doc().is_some_and(|doc| is_true(doc, "allChangesForCluster"));
            let both = [Action::ChangeStream, Action::Find];
            both.into_iter().all(|action| match collection {
                // A stream of the whole deployment sees every ordinary database.
                None if cluster => rights.on_database("", action),
                None => rights.on_database(db, action),
                Some(name) => rights.on_namespace(db, name, action),
            })
        }
        (Some(("$documents", _)), None) => rights.is_authenticated(),
        (_, Some(name)) => rights.on_namespace(db, name, Action::Find),
        (_, None) => rights.on_database(db, Action::Find),
    };
    source && may_run_stages(db, stages, bypass, rights, 0)
}

fn may_run_stages(db: &str, stages: RawArray<'_>, bypass: bool, rights: &Rights, depth: usize) -> bool {
    if depth > DEPTH_MAX {
        return false;
    }
    // Every field is looked at, also a second one: the parser must not see another than this does.
    let stages = stages.iter().filter_map(ValueRef::as_doc).flat_map(RawDoc::iter);
    let mut all = stages.map(|elem| (elem.name(), elem.value()));
    all.all(|(stage, spec)| match (stage, spec) {
        // Which of two fields counts is the parser's business; nobody needs to send such a stage.
        ("$lookup" | "$graphLookup" | "$unionWith" | "$out" | "$merge", ValueRef::Document(spec))
            if is_ambiguous(spec) =>
        {
            false
        }
        ("$lookup" | "$graphLookup" | "$unionWith", ValueRef::Document(spec)) => {
            spec.iter().all(|elem| match (elem.name(), elem.value()) {
                ("from" | "coll", ValueRef::String(name)) => rights.on_namespace(db, name, Action::Find),
                ("from", ValueRef::Document(from)) => may_read_elsewhere(db, from, rights),
                ("pipeline", ValueRef::Array(inner)) => may_run_stages(db, inner, bypass, rights, depth + 1),
                _ => true,
            })
        }
        ("$unionWith", ValueRef::String(name)) => rights.on_namespace(db, name, Action::Find),
        ("$facet", ValueRef::Document(facets)) => facets.iter().all(|facet| match facet.value() {
            ValueRef::Array(inner) => may_run_stages(db, inner, bypass, rights, depth + 1),
            _ => true,
        }),
        ("$out", target) => {
            let mut actions = vec![Action::Insert, Action::Remove];
            actions.extend(bypass.then_some(Action::BypassDocumentValidation));
            may_write(db, target, &actions, rights)
        }
        ("$merge", ValueRef::Document(spec)) => {
            let mut actions: Vec<Action> = match spec.get("whenMatched") {
                Some(ValueRef::String("keepExisting" | "fail")) => Vec::new(),
                _ => vec![Action::Update],
            };
            match spec.get("whenNotMatched") {
                Some(ValueRef::String("discard" | "fail")) => {}
                _ => actions.push(Action::Insert),
            }
            // Whatever else: who merges must be able to change something there.
            if actions.is_empty() {
                actions.push(Action::Update);
            }
            actions.extend(bypass.then_some(Action::BypassDocumentValidation));
            let read = spec.iter().all(|elem| match (elem.name(), elem.value()) {
                ("whenMatched", ValueRef::Array(inner)) => may_run_stages(db, inner, bypass, rights, depth + 1),
                ("into", target) => may_write(db, target, &actions, rights),
                _ => true,
            });
            read && spec.get("into").is_some()
        }
        ("$merge", target) => {
            let mut actions = vec![Action::Insert, Action::Update];
            actions.extend(bypass.then_some(Action::BypassDocumentValidation));
            may_write(db, target, &actions, rights)
        }
        _ => true,
    })
}

fn may_read_elsewhere(db: &str, from: RawDoc<'_>, rights: &Rights) -> bool {
    let other = from.get_str("db").unwrap_or(db);
    from.get_str("coll").is_none_or(|name| rights.on_namespace(other, name, Action::Find))
}

fn may_write(db: &str, target: ValueRef<'_>, actions: &[Action], rights: &Rights) -> bool {
    let (db, collection) = match target {
        ValueRef::String(name) => (db, name),
        ValueRef::Document(doc) => (doc.get_str("db").unwrap_or(db), doc.get_str("coll").unwrap_or_default()),
        // Not a target at all: the parser will say so.
        _ => return rights.is_authenticated(),
    };
    actions.iter().all(|action| rights.on_namespace(db, collection, *action))
}

/// Whether a name is given twice, here or in a target inside.
fn is_ambiguous(doc: RawDoc<'_>) -> bool {
    doc.iter().enumerate().any(|(at, elem)| {
        doc.iter().take(at).any(|before| before.name() == elem.name())
            || matches!((elem.name(), elem.value()), ("into" | "from", ValueRef::Document(inner)) if is_ambiguous(inner))
    })
}

fn is_true(doc: RawDoc<'_>, name: &str) -> bool {
    doc.iter().any(|elem| elem.name() == name && matches!(elem.value(), ValueRef::Bool(true)))
}
