//! Scenarios come from the seed alone, and shrinking only ever takes away.
#![allow(clippy::unwrap_used)]

use bson::{Bson, doc};

use super::generate::KINDS;
use super::shrink::candidates;
use crate::random::Random;
use crate::shell::{parse, print};

#[test]
fn a_seed_gives_the_same_scenario_again() {
    for kind in KINDS {
        for round in 0..50 {
            let again = |_: u32| format!("{:?}", (kind.generate)(&mut Random::part(3, round)));
            assert_eq!(again(0), again(1), "{}", kind.name);
        }
    }
}

#[test]
fn other_rounds_give_other_scenarios() {
    for kind in KINDS {
        let texts: std::collections::BTreeSet<String> =
            (0..50).map(|round| format!("{:?}", (kind.generate)(&mut Random::part(3, round)))).collect();
        assert_eq!(texts.len(), 50, "{}", kind.name);
    }
}

#[test]
fn what_is_generated_can_be_pasted_into_a_file() {
    for kind in KINDS {
        for round in 0..200 {
            let scenario = (kind.generate)(&mut Random::part(5, round));
            for document in scenario.documents.iter().chain(&scenario.commands) {
                let value = Bson::Document(document.clone());
                assert_eq!(print(&parse(&print(&value)).unwrap()), print(&value), "{}", kind.name);
            }
        }
    }
}

#[test]
fn every_candidate_is_smaller() {
    let mut scenario = (KINDS[0].generate)(&mut Random::new(1)).only(0);
    scenario.documents = vec![doc! { "_id": 0, "a": [1, { "b": 2 }] }, doc! { "_id": 1 }];
    let size = |scenario: &super::generate::Scenario| format!("{scenario:?}").len();
    let found = candidates(&scenario);
    assert!(found.len() > 5);
    assert!(found.iter().all(|candidate| size(candidate) < size(&scenario)));
}
