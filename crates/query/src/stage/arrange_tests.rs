//! The order that stages are put in, and that it changes nothing but the work.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use espalier_value::{ArrayBuf, DocBuf, ValueRef};

use super::pipeline::string_together;
use super::{Parser, Pipeline, Run, places};
use crate::context::Context;
use crate::expression::Scope;
use crate::stream::Buffered;
use crate::testing::{array, docs, drain};

fn text(doc: &DocBuf) -> String {
    ValueRef::Document(doc.as_raw()).to_string()
}

/// The stages in the order in which they run.
fn arranged(pipeline: &str) -> String {
    let pipeline = Pipeline::parse(array(pipeline).as_raw(), &Scope::default(), &Context::default()).unwrap();
    let written: Vec<String> = pipeline.written().iter().flatten().map(text).collect();
    format!("[{}]", written.join(", "))
}

fn same_order(pipeline: &str, expected: &str) {
    let expected: Vec<String> = docs(expected).iter().map(text).collect();
    assert_eq!(arranged(pipeline), format!("[{}]", expected.join(", ")), "{pipeline}");
}

#[test]
fn conditions_go_ahead_of_projections() {
    same_order(
        "[{$project: {a: 1, x: '$b'}}, {$match: {a: 1, 'x.y': 2, c: 3}}]",
        "[{$match: {$and: [{a: 1}, {'b.y': 2}]}}, {$project: {a: 1, x: '$b'}}, {$match: {c: 3}}]",
    );
    same_order(
        "[{$set: {y: {$add: ['$a', 1]}}}, {$match: {$and: [{a: 1}, {$or: [{b: 2}, {y: 2}]}], $or: [{b: 1}, {a: 2}]}}]",
        "[{$match: {$and: [{a: 1}, {$or: [{b: 1}, {a: 2}]}]}}, {$set: {y: {$add: ['$a', 1]}}},
          {$match: {$or: [{b: 2}, {y: 2}]}}]",
    );
    same_order(
        "[{$unset: 'b'}, {$match: {a: 1, 'b.c': 1, $expr: {$eq: ['$a', '$d']}}}]",
        "[{$match: {$and: [{a: 1}, {$expr: {$eq: ['$a', '$d']}}]}}, {$unset: 'b'}, {$match: {'b.c': 1}}]",
    );
    // What is below a computed field, and what comes from below another, may be an array of something else.
    let stays = "[{$set: {'a.b': 1, x: '$c.d'}}, {$match: {$and: [{'a.c': null}, {x: 1}]}}]";
    same_order(stays, stays);
}

#[test]
fn conditions_go_ahead_of_other_stages() {
    same_order(
        "[{$unwind: {path: '$c', includeArrayIndex: 'i'}}, {$match: {a: 1, c: 2, i: 0, $expr: '$a'}}]",
        "[{$match: {a: 1}}, {$unwind: {path: '$c', includeArrayIndex: 'i'}},
          {$match: {$and: [{c: 2}, {i: 0}, {$expr: '$a'}]}}]",
    );
    same_order(
        "[{$lookup: {from: 'u', localField: 'a', foreignField: 'b', as: 'j.k'}}, {$match: {a: 1, j: 2}}]",
        "[{$match: {a: 1}}, {$lookup: {from: 'u', localField: 'a', foreignField: 'b', as: 'j.k'}}, {$match: {j: 2}}]",
    );
    same_order(
        "[{$unwind: '$c'}, {$sort: {b: 1}}, {$match: {a: 1}}]",
        "[{$match: {a: 1}}, {$sort: {b: 1}}, {$unwind: '$c'}]",
    );
    let stays = "[{$unwind: '$c'}, {$sort: {c: 1}}, {$limit: 3}, {$match: {a: 1}}]";
    same_order(stays, stays);
    let stays = "[{$replaceRoot: {newRoot: '$c'}}, {$match: {a: 1}}]";
    same_order(stays, stays);
}

#[test]
fn conditions_on_a_groups_key_go_ahead_where_they_mean_the_same() {
    same_order(
        "[{$group: {_id: '$a', n: {$sum: 1}}}, {$match: {_id: {$gt: 3}, n: 1}}]",
        "[{$match: {a: {$gt: 3}}}, {$group: {_id: '$a', n: {$sum: 1}}}, {$match: {n: 1}}]",
    );
    same_order(
        "[{$group: {_id: {x: '$a', y: '$b'}}}, {$match: {'_id.x': 1, '_id.z': 1}}]",
        "[{$match: {a: 1}}, {$group: {_id: {x: '$a', y: '$b'}}}, {$match: {'_id.z': 1}}]",
    );
    same_order(
        "[{$sortByCount: '$a'}, {$match: {_id: {$ne: null}}}]",
        "[{$match: {a: {$ne: null}}}, {$sortByCount: '$a'}]",
    );
    for stays in ["{_id: {$exists: true}}", "{_id: {$type: 'int'}}", "{'_id.x': 1}", "{_id: {$size: 1}}"] {
        let stays = format!("[{{$group: {{_id: '$a'}}}}, {{$match: {stays}}}]");
        same_order(&stays, &stays);
    }
    let stays = "[{$group: {_id: '$a.b'}}, {$match: {_id: 1}}]";
    same_order(stays, stays);
}

#[test]
fn what_stands_side_by_side_is_merged() {
    same_order(
        "[{$unwind: '$c'}, {$limit: 5}, {$limit: 3}, {$skip: 1}, {$skip: 2}]",
        "[{$unwind: '$c'}, {$limit: 3}, {$skip: 3}]",
    );
    same_order(
        "[{$unwind: '$c'}, {$match: {c: 1}}, {$match: {'c.d': 1}}]",
        "[{$unwind: '$c'}, {$match: {$and: [{c: 1}, {'c.d': 1}]}}]",
    );
    same_order("[{$project: {a: 1}}, {$limit: 3}]", "[{$limit: 3}, {$project: {a: 1}}]");
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    fn value(&mut self) -> String {
        let simple = ["1", "2", "1.0", "3.5", "'x'", "'y'", "null", "true", "[]", "{}"];
        match self.below(8) {
            0 => format!("[{}, {}]", self.of(&simple), self.of(&simple)),
            1 => format!("{{b: {}, c: {}}}", self.of(&simple), self.of(&simple)),
            2 => format!("[{{b: {}}}, {}, {{c: {}}}]", self.of(&simple), self.of(&simple), self.of(&simple)),
            _ => self.of(&simple).into(),
        }
    }

    fn document(&mut self, id: usize) -> String {
        let mut out = format!("{{_id: {id}");
        for name in ["a", "b", "c", "d"] {
            if self.below(4) > 0 {
                out.push_str(&format!(", {name}: {}", self.value()));
            }
        }
        out + "}"
    }

    fn condition(&mut self, depth: usize) -> String {
        let path = self.of(&["a", "b", "c", "d", "x", "_id", "a.b", "b.c", "x.b", "_id.x", "c.0", "d.1.b", "_id.b"]);
        let value = self.value();
        match self.below(if depth > 0 { 12 } else { 9 }) {
            0 => format!("'{path}': {{$gt: {value}}}"),
            1 => format!("'{path}': {{$lte: {value}}}"),
            2 => format!("'{path}': {{$ne: {value}}}"),
            3 => format!("'{path}': {{$in: [{value}, {}]}}", self.value()),
            4 => format!("'{path}': {{$exists: {}}}", self.of(&["true", "false"])),
            5 => format!("'{path}': {{$type: '{}'}}", self.of(&["int", "double", "null", "array", "object"])),
            6 => format!("'{path}': {{$not: {{$gte: {value}}}}}"),
            7 => format!("'{path}': {{$elemMatch: {{b: {value}}}}}"),
            8 => format!("'{path}': {value}"),
            9 => format!("$or: [{{{}}}, {{{}}}]", self.condition(depth - 1), self.condition(depth - 1)),
            10 => format!("$nor: [{{{}}}]", self.condition(depth - 1)),
            _ => format!(
                "$expr: {{$gte: ['${}', {}]}}",
                self.of(&["a", "b", "x", "a.b"]),
                self.of(&["1", "null", "'x'"])
            ),
        }
    }

    fn stage(&mut self) -> String {
        const STAGES: [&str; 24] = [
            "{$project: {a: 1, b: 1}}",
            "{$project: {a: 1, x: '$b', _id: 0}}",
            "{$project: {'a.b': 1, c: 1}}",
            "{$project: {b: 0, 'c.b': 0}}",
            "{$project: {x: {b: '$a'}, d: 1}}",
            "{$set: {x: '$a'}}",
            "{$set: {x: '$a.b', b: '$c'}}",
            "{$set: {a: '$b', b: '$a'}}",
            "{$set: {'a.b': 1}}",
            "{$set: {x: {$ifNull: ['$a', 7]}}}",
            "{$unset: ['a', 'b.c']}",
            "{$unwind: '$a'}",
            "{$unwind: {path: '$b', preserveNullAndEmptyArrays: true}}",
            "{$unwind: {path: '$a.b', includeArrayIndex: 'x'}}",
            "{$sort: {c: 1}}",
            "{$sort: {b: -1, _id: 1}}",
            "{$group: {_id: '$a', b: {$first: '$b'}, c: {$sum: 1}}}",
            "{$group: {_id: {x: '$b'}, a: {$first: '$a'}}}",
            "{$group: {_id: {x: '$a', b: '$b'}, c: {$push: '$c'}}}",
            "{$group: {_id: '$a.b', b: {$sum: 1}}}",
            "{$sortByCount: '$b'}",
            "{$limit: 30}",
            "{$skip: 3}",
            "{$replaceRoot: {newRoot: {a: '$b', b: '$a', _id: '$_id'}}}",
        ];
        self.of(&STAGES).into()
    }
}

fn results(stream: espalier_value::Result<Box<dyn crate::Stream>>) -> Result<Vec<String>, i32> {
    let all: ArrayBuf = stream.and_then(drain).map_err(|error| error.code().0)?;
    Ok(all.as_raw().iter().map(|value| value.to_string()).collect())
}

#[test]
fn arranged_pipelines_give_what_unarranged_ones_give() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (scope, context) = (Scope::default(), Context::default());
    let parser = Parser { scope: &scope, context: &context, depth: 0 };
    let mut moved = 0;
    for round in 0..600 {
        let input: Vec<String> = (0..40).map(|id| random.document(id)).collect();
        let input = docs(&format!("[{}]", input.join(", ")));
        let mut stages = Vec::new();
        for _ in 0..1 + random.below(3) {
            stages.push(random.stage());
        }
        for _ in 0..1 + random.below(2) {
            let conditions: Vec<String> = (0..1 + random.below(3)).map(|_| random.condition(2)).collect();
            let at = 1 + random.below(stages.len());
            stages.insert(at, format!("{{$match: {{$and: [{{{}}}]}}}}", conditions.join("}, {")));
        }
        let written = format!("[{}]", stages.join(", "));
        let source = array(&written);
        let run = Run::new(Arc::new(Context::new(0, 1)));
        let plain: Vec<_> =
            source.as_raw().iter().flat_map(|stage| parser.stage(stage.as_doc().unwrap()).unwrap()).collect();
        let plain = places::keep(plain);
        let expected = results(string_together(&plain, Box::new(Buffered::new(input.clone())), &run));
        let pipeline = Pipeline::parse(source.as_raw(), &scope, &context).unwrap();
        let found = results(pipeline.run_all(Box::new(Buffered::new(input)), &run));
        moved += usize::from(arranged(&written) != plain_text(&source));
        assert_eq!(found, expected, "round {round}: {written} as {}", arranged(&written));
    }
    assert!(moved > 200, "only {moved} were arranged otherwise");
}

fn plain_text(source: &ArrayBuf) -> String {
    let stages: Vec<String> = source.as_raw().iter().map(|v| v.to_string()).collect();
    format!("[{}]", stages.join(", "))
}
