//! Makes a scenario that shows a difference smaller while it still shows one.

use bson::{Bson, Document};

use super::generate::Scenario;
use super::pair::Pair;
use crate::error::Result;

/// Trials per difference: each costs a few round trips on both servers.
const TRIALS_MAX: usize = 300;

/// A smaller scenario with the same kind of difference.
pub fn shrink(pair: &mut Pair, scenario: Scenario) -> Result<Scenario> {
    let mut best = scenario;
    let mut trials = 0;
    // Another difference that turns up on the way is not the one to be shown.
    let kind = pair.kind_of_difference(&best)?;
    loop {
        let mut smaller = None;
        for candidate in candidates(&best) {
            trials += 1;
            if trials > TRIALS_MAX {
                return Ok(best);
            }
            if pair.kind_of_difference(&candidate)? == kind {
                smaller = Some(candidate);
                break;
            }
        }
        match smaller {
            Some(candidate) => best = candidate,
            None => return Ok(best),
        }
    }
}

/// Everything that is a step smaller, the largest steps first.
pub(super) fn candidates(scenario: &Scenario) -> Vec<Scenario> {
    let mut found = Vec::new();
    let count = scenario.documents.len();
    for size in [count / 2, count / 4, 1] {
        if size == 0 || size >= count && count > 1 {
            continue;
        }
        for start in (0..count).step_by(size) {
            let mut candidate = scenario.clone();
            candidate.documents.drain(start..(start + size).min(count));
            found.push(candidate);
        }
    }
    for number in 0..scenario.indexes.len() {
        let mut candidate = scenario.clone();
        candidate.indexes.remove(number);
        found.push(candidate);
    }
    for (number, command) in scenario.commands.iter().enumerate() {
        for smaller in smaller_documents(command, true) {
            let mut candidate = scenario.clone();
            candidate.commands[number] = smaller;
            found.push(candidate);
        }
    }
    for (number, document) in scenario.documents.iter().enumerate() {
        for smaller in smaller_documents(document, false) {
            let mut candidate = scenario.clone();
            candidate.documents[number] = smaller;
            found.push(candidate);
        }
    }
    found
}

/// The document without one of its fields or elements, at any depth. The first field of a command names it, and `_id`
/// keeps documents apart.
fn smaller_documents(document: &Document, is_command: bool) -> Vec<Document> {
    let mut found = Vec::new();
    for (at, (key, value)) in document.iter().enumerate() {
        if (is_command && at == 0) || key == "_id" {
            continue;
        }
        let mut without = document.clone();
        without.remove(key);
        found.push(without);
        for smaller in smaller_values(value) {
            let mut with = document.clone();
            with.insert(key.clone(), smaller);
            found.push(with);
        }
    }
    found
}

fn smaller_values(value: &Bson) -> Vec<Bson> {
    match value {
        Bson::Document(document) => smaller_documents(document, false).into_iter().map(Bson::Document).collect(),
        Bson::Array(items) => {
            let mut found = Vec::new();
            for at in 0..items.len() {
                // Without its `$sort` a pipeline may have several right answers.
                let sorts = items[at].as_document().is_some_and(|stage| stage.contains_key("$sort"));
                if !sorts {
                    let mut without = items.clone();
                    without.remove(at);
                    found.push(Bson::Array(without));
                }
                for smaller in smaller_values(&items[at]) {
                    let mut with = items.clone();
                    with[at] = smaller;
                    found.push(Bson::Array(with));
                }
            }
            found
        }
        _ => Vec::new(),
    }
}
