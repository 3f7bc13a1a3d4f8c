//! Derivations on one collection that are linked by what others of them keep.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Db, json};

const REGION: &str =
    "{reference: {from: \"regions\", on: {\"customer.region\": \"_id\"}, into: \"region\", fields: [\"name\"]}}";
const CUSTOMER: &str =
    "{reference: {from: \"customers\", on: {customerId: \"_id\"}, into: \"customer\", fields: [\"region\"]}}";

fn name_of_region(db: &Db) -> String {
    db.assert_valid("orders");
    let order = db.find("orders", "{_id: 1}").remove(0);
    let name = order.as_raw().get_doc("region").and_then(|region| region.get_str("name"));
    name.unwrap_or("none").to_string()
}

/// Whatever the order in which they are declared, and whether that is before or after there are documents.
#[test]
fn one_that_is_linked_by_another_follows_it() {
    for patterns in [[CUSTOMER, REGION], [REGION, CUSTOMER]] {
        for late in [false, true] {
            let db = Db::new();
            let options = format!("{{patterns: [{}]}}", patterns.join(", "));
            db.create("orders", if late { "{}" } else { &options }).unwrap();
            db.insert("regions", &[json("{_id: \"EU\", name: \"Europe\"}"), json("{_id: \"US\", name: \"States\"}")])
                .unwrap();
            db.insert("customers", &[json("{_id: 1, region: \"EU\"}"), json("{_id: 2, region: \"US\"}")]).unwrap();
            db.insert("orders", &[json("{_id: 1, customerId: 1}")]).unwrap();
            if late {
                db.modify("orders", &options).unwrap();
            }
            assert_eq!(name_of_region(&db), "Europe", "{options}");
            db.update("orders", "{_id: 1}", "{$set: {customerId: 2}}").unwrap();
            assert_eq!(name_of_region(&db), "States", "{options}");
            db.update("orders", "{_id: 1}", "{customerId: 1}").unwrap();
            assert_eq!(name_of_region(&db), "Europe", "{options}");
            db.update("customers", "{_id: 1}", "{$set: {region: \"US\"}}").unwrap();
            assert_eq!(name_of_region(&db), "States", "{options}");
            db.update("regions", "{_id: \"US\"}", "{$set: {name: \"America\"}}").unwrap();
            assert_eq!(name_of_region(&db), "America", "{options}");
            db.update("orders", "{_id: 1}", "{$unset: {customerId: 1}}").unwrap();
            assert_eq!(name_of_region(&db), "none", "{options}");
        }
    }
}

#[test]
fn a_link_by_what_a_layout_keeps_is_refused() {
    let db = Db::new();
    for (layout, field) in [
        ("{outlier: {array: \"items\"}}", "itemCount"),
        ("{archive: {when: {a: 1}}}", "archivedAt"),
        ("{approximate: {fields: [\"n\"]}}", "lastFlushed"),
    ] {
        let linked = format!(
            "{{patterns: [{layout}, {{computed: {{from: \"src\", on: {{k: \"{field}\"}}, into: \"s\", \
             fields: {{n: {{$count: {{}}}}}}}}}}]}}"
        );
        let error = db.create("c", &linked).unwrap_err();
        assert!(error.message().contains(&format!("'computed' cannot be linked by '{field}'")), "{}", error.message());
    }
}
