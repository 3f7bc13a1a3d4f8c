//! Finds where a pipeline puts a field back that it took out before. MongoDB's documents keep the place of such a field,
//! so that it comes back where it was; ours do so only between the stages where it shows.

use std::sync::Arc;

use super::Stage;

/// What a stage does with the places of fields that were taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Places {
    /// They are forgotten.
    Drop,
    /// They are kept for the next stage.
    Keep,
    /// They are used, and forgotten afterwards.
    End,
}

/// What a stage does to the fields of a document.
pub enum Role<'a> {
    /// Makes other documents.
    Renews,
    /// Lets documents through as they are.
    Passes,
    /// Takes top-level fields out, or puts them where they were.
    Changes { vacates: Vec<&'a str>, fills: Vec<&'a str> },
}

/// Tells the stages between which places must be kept.
pub(super) fn keep(mut stages: Vec<Arc<dyn Stage>>) -> Vec<Arc<dyn Stage>> {
    let roles: Vec<Role<'_>> = stages.iter().map(|stage| stage.role()).collect();
    // Whether places are kept between a stage and the next.
    let mut kept = vec![false; stages.len()];
    for (from, role) in roles.iter().enumerate() {
        let Role::Changes { vacates, .. } = role else { continue };
        let mut last = from;
        for (to, later) in roles.iter().enumerate().skip(from + 1) {
            match later {
                Role::Renews => break,
                Role::Passes => {}
                Role::Changes { fills, .. } if fills.iter().any(|name| vacates.contains(name)) => last = to,
                Role::Changes { .. } => {}
            }
        }
        kept[from..last].fill(true);
    }
    drop(roles);
    for at in 0..stages.len() {
        let places = match (at > 0 && kept[at - 1], kept[at]) {
            (_, true) => Places::Keep,
            (true, false) => Places::End,
            (false, false) => continue,
        };
        if let Some(stage) = stages[at].with_places(places) {
            stages[at] = stage;
        }
    }
    stages
}
