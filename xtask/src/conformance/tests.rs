//! The file format, what is compared, and what is not.
#![allow(clippy::unwrap_used)]

use bson::{Bson, doc};

use super::case::Directives;
use super::compare::difference;
use super::file::TestFile;
use super::normalize::normalize;
use crate::shell::{parse, print};

const FILE: &str = "\
# A file.
# recorded from MongoDB 6.0.5

## one
# unordered
# only: n, ok
>> {insert: \"c\",
  documents: [{_id: 1}]}
> @admin {ping: 1}
> {find: \"c\"}
---
{ok: 1.0}
[
  {_id: 1},
]

## two
> {ping: 1}
";

#[test]
fn a_file_is_written_as_it_was_read() {
    let file = TestFile::parse(FILE).unwrap();
    assert_eq!(file.print(), FILE);
}

#[test]
fn a_file_says_what_to_run() {
    let file = TestFile::parse(FILE).unwrap();
    let case = &file.cases[0];
    assert_eq!(case.title, "one");
    assert!(case.directives.unordered && !case.directives.raw_cursor);
    assert_eq!(case.directives.only, ["n", "ok"]);
    let shown: Vec<_> = case.commands.iter().map(|c| (c.db.as_str(), c.silent)).collect();
    assert_eq!(shown, [("test", true), ("admin", false), ("test", false)]);
    assert!(case.commands[0].text.ends_with("documents: [{_id: 1}]}"));
    assert_eq!(case.output("").unwrap().len(), 2);
    assert!(file.cases[1].output("").is_err());
}

#[test]
fn mistakes_in_a_file_are_refused() {
    for text in
        ["> {a: 1}\n", "## a\nnonsense\n", "## a\n  {b: 1}\n", "## a\n## a\n", "## a\n> @admin\n", "## a\n---\n---\n"]
    {
        assert!(TestFile::parse(text).is_err(), "{text}");
    }
}

fn same(expected: &str, actual: &str, directives: &Directives) -> bool {
    difference(&[parse(expected).unwrap()], &[parse(actual).unwrap()], directives).is_none()
}

#[test]
fn an_error_is_its_code() {
    let plain = Directives::default();
    let error = "{ok: 0.0, errmsg: \"bad\", code: 2, codeName: \"BadValue\"}";
    assert!(same(error, "{code: 2, codeName: \"BadValue\", errmsg: \"worse\", ok: 0.0}", &plain));
    assert!(!same(error, "{ok: 0.0, errmsg: \"bad\", code: 9, codeName: \"FailedToParse\"}", &plain));
    assert!(!same(error, "{ok: 1.0}", &plain));
    let write = |index: i32, message: &str| {
        format!(
            "{{n: 1, writeErrors: [{{index: {index}, code: 11000, keyPattern: {{_id: 1}}, errmsg: \"{message}\"}}], ok: 1.0}}"
        )
    };
    assert!(same(&write(0, "a"), &write(0, "b"), &plain));
    assert!(!same(&write(0, "a"), &write(1, "a"), &plain));
}

#[test]
fn types_and_order_of_fields_in_documents_count() {
    let plain = Directives::default();
    assert!(!same("[{a: 1}]", "[{a: NumberLong(1)}]", &plain));
    assert!(!same("[{a: 1}]", "[{a: 1.0}]", &plain));
    assert!(!same("[{a: 1, b: 2}]", "[{b: 2, a: 1}]", &plain));
    assert!(!same("[{a: 0.0}]", "[{a: -0.0}]", &plain));
    assert!(same("[{a: NaN}]", "[{a: NaN}]", &plain));
    assert!(same("{n: 1, ok: 1.0}", "{ok: 1.0, n: 1}", &plain));
}

#[test]
fn unordered_results_are_a_bag() {
    let unordered = Directives { unordered: true, ..Directives::default() };
    assert!(same("[{a: 1}, {a: 2}]", "[{a: 2}, {a: 1}]", &unordered));
    assert!(!same("[{a: 1}, {a: 2}]", "[{a: 2}, {a: 2}]", &unordered));
    assert!(!same("[{a: 1}, {a: 2}]", "[{a: 2}, {a: 1}]", &Directives::default()));
}

#[test]
fn what_no_two_runs_share_is_taken_out() {
    let old = bson::oid::ObjectId::parse_str("0123456789abcdef01234567").unwrap();
    let reply = doc! {
        "cursor": { "id": 77i64, "firstBatch": [{ "_id": bson::oid::ObjectId::new(), "old": old, "at": bson::DateTime::now() }] },
        "info": { "uuid": bson::Uuid::new() },
        "ok": 1.0, "operationTime": 1, "$clusterTime": {},
    };
    let normal = normalize(Bson::Document(reply), &doc! { "find": "c" }, &Directives::default());
    assert_eq!(
        print(&normal),
        "{cursor: {id: <cursor>, firstBatch: [{_id: <oid>, old: ObjectId(\"0123456789abcdef01234567\"), at: <now>}]}, \
         info: {uuid: <uuid>}, ok: 1.0}"
    );
}
