//! Why a document failed a filter: the `errInfo` of a validation error, in MongoDB's shape.
//!
//! Runs only after a failure, so it reads the filter's source anew, clause by clause, in the order it was written;
//! the tree that `matches` runs is sorted and has forgotten how a condition was put.

use std::collections::BTreeSet;

use espalier_value::{ArrayBuf, DocBuf, Elem, Path, RawArray, RawDoc, Result, Value, ValueRef};

use super::eval::{self, Target};
use super::walk::{self, Visit};
use super::{Reach, parse, schema};
use crate::context::Context;
use crate::expression::{Env, Expression, Scope};

/// More values than this are not listed.
const CONSIDERED_MAX: usize = 10;
/// An explanation beyond this would not fit into a reply.
const BYTES_MAX: usize = 12 << 20;

/// `{failingDocumentId, details}`.
pub(super) fn explain(filter: RawDoc<'_>, doc: RawDoc<'_>, context: &Context, scope: &Scope) -> DocBuf {
    let mut info = DocBuf::new();
    if let Some(id) = doc.get("_id") {
        info.append("failingDocumentId", id);
    }
    let details = Explainer { doc, context, scope }.document(filter, false);
    if details.len_bytes() > BYTES_MAX {
        info.append("note", "the explanation of the failure is too large");
    } else {
        info.append("details", &details);
    }
    info
}

struct Explainer<'a> {
    doc: RawDoc<'a>,
    context: &'a Context,
    /// What the filter was parsed in.
    scope: &'a Scope,
}

/// One condition as it was written.
#[derive(Clone, Copy)]
enum Clause<'a> {
    /// `{$or: […]}`
    Top { name: &'a str, argument: ValueRef<'a> },
    /// `{a: 1}`
    Plain { path: &'a str, value: ValueRef<'a> },
    /// `{a: {$gt: 1}}`, one operator of possibly several.
    Operator { path: &'a str, name: &'a str, argument: ValueRef<'a>, siblings: RawDoc<'a> },
}

impl<'a> Explainer<'a> {
    /// `inverted`: the filter stands under a negation, and it is its matching that must be explained.
    fn document(&self, filter: RawDoc<'_>, inverted: bool) -> DocBuf {
        self.clauses(&clauses(filter), inverted)
    }

    fn clauses(&self, clauses: &[Clause<'_>], inverted: bool) -> DocBuf {
        if let [only] = clauses {
            return self.clause(*only, inverted);
        }
        let mut details = named("$and");
        details.append_array(satisfied(inverted), |list| {
            for (index, clause) in clauses.iter().enumerate() {
                if self.matches(clause.to_filter().as_raw()) == inverted {
                    push_indexed(list, index, &self.clause(*clause, inverted));
                }
            }
        });
        details
    }

    fn clause(&self, clause: Clause<'_>, inverted: bool) -> DocBuf {
        match clause {
            Clause::Top { name, argument } => match (name, argument) {
                ("$and" | "$or", ValueRef::Array(list)) => self.list(name, list, inverted, inverted),
                ("$nor", ValueRef::Array(list)) => self.list(name, list, !inverted, !inverted),
                ("$jsonSchema", ValueRef::Document(_)) if inverted => {
                    let mut details = named(name);
                    details.append("reason", "schema matched");
                    details
                }
                ("$jsonSchema", ValueRef::Document(source)) => schema::explain::explain(source, self.doc),
                _ => self.whole(name, argument, inverted),
            },
            Clause::Plain { path, value } => self.leaf(clause, path, plain_name(value), value, inverted),
            Clause::Operator { path, name: "$not", argument, .. } => {
                let mut details = named("$not");
                let inner = match argument {
                    ValueRef::Document(doc) => self.clauses(&operators(path, doc), !inverted),
                    value => self.clause(Clause::Plain { path, value }, !inverted),
                };
                details.append("details", &inner);
                details
            }
            Clause::Operator { path, name, argument, .. } => self.leaf(clause, path, name, argument, inverted),
        }
    }

    /// The filters of a list that do (`wanted`) or do not match, each with its own explanation.
    fn list(&self, name: &str, list: RawArray<'_>, wanted: bool, inverted: bool) -> DocBuf {
        let mut details = named(name);
        details.append_array(satisfied(wanted), |out| {
            for (index, entry) in list.iter().enumerate() {
                if let ValueRef::Document(filter) = entry
                    && self.matches(filter) == wanted
                {
                    push_indexed(out, index, &self.document(filter, inverted));
                }
            }
        });
        details
    }

    /// `$expr`, `$sampleRate`, `$alwaysFalse`, …
    fn whole(&self, name: &str, argument: ValueRef<'_>, inverted: bool) -> DocBuf {
        let mut details = named(name);
        details.append_doc("specifiedAs", |spec| {
            spec.append(name, argument);
        });
        let result = match name {
            "$expr" => Expression::parse(argument, self.scope)
                .and_then(|e| e.eval(&Env::new(self.doc, self.context)).map(Value::into_owned)),
            "$sampleRate" => Ok(ValueRef::Bool(inverted).into()),
            _ => {
                details.append("reason", format!("expression always evaluates to {inverted}").as_str());
                return details;
            }
        };
        match result {
            Ok(value) => {
                details.append("reason", if inverted { "expression did match" } else { "expression did not match" });
                details.append_value("expressionResult", &value);
            }
            Err(error) => {
                details.append("reason", "failed to evaluate aggregation expression");
                details.append_doc("details", |out| {
                    out.append("code", error.code().0);
                    out.append("codeName", error.code().name().as_str());
                    out.append("errmsg", error.message());
                });
            }
        }
        details
    }

    fn leaf(&self, clause: Clause<'_>, path: &str, name: &str, argument: ValueRef<'_>, inverted: bool) -> DocBuf {
        let mut details = named(name);
        details.append("specifiedAs", &clause.specification());
        // `$ne` fails where `$eq` succeeds.
        let negative = match name {
            "$ne" | "$nin" => true,
            "$exists" => !crate::expression::truthy(&Value::Ref(argument)),
            _ => false,
        };
        let matched = inverted != negative;
        let Some(words) = Words::of(name) else { return details };
        if let ("$all", ValueRef::Array(list)) = (name, argument)
            && list.is_empty()
        {
            details.append("reason", "expression always evaluates to false");
            return details;
        }
        let reason = if matched { words.matched } else { words.failed };
        if name == "$exists" {
            details.append("reason", reason);
            return details;
        }
        let considered = self.considered(path, words.reach);
        if !considered.found {
            details.append("reason", "field was missing");
            return details;
        }
        let fits = |value: &Value<'_>| words.expects.is_empty() || words.expects.contains(&value.or_null().ty().name());
        if !matched && !considered.values.iter().any(fits) && !words.expects.is_empty() {
            details.append("reason", "type did not match");
            considered.append_types(&mut details);
            match words.expects {
                [one] => details.append("expectedType", *one),
                several => details.append_array("expectedTypes", |list| push_all(list, several.iter())),
            };
            considered.append_values(&mut details);
        } else {
            details.append("reason", reason);
            considered.append_values(&mut details);
            if name == "$type" {
                considered.append_types(&mut details);
            }
        }
        details
    }

    fn considered(&self, path: &str, reach: Reach) -> Considered {
        let mut considered = Considered { values: Vec::new(), found: false, reach };
        // Collecting never fails, and never says true to stop.
        let _ = walk::document(self.doc, Path::new(path).parts(), &mut considered, &mut None);
        considered
    }

    /// An error while matching is a failure to match.
    fn matches(&self, filter: RawDoc<'_>) -> bool {
        let matches = || -> Result<bool> {
            let node = parse::document(filter, &parse::Parser::top(self.scope))?;
            eval::eval(&node, Target::Document(self.doc), self.context, &mut None)
        };
        matches().unwrap_or(false)
    }
}

/// The values a condition was tried on.
struct Considered {
    values: Vec<Value<'static>>,
    found: bool,
    reach: Reach,
}

impl Visit for Considered {
    fn visit(&mut self, value: Option<ValueRef<'_>>, _: &mut Option<usize>) -> Result<bool> {
        if let Some(value) = value {
            self.found = true;
            self.values.push(Value::own(value));
        }
        Ok(false)
    }

    fn reach(&self) -> Reach {
        self.reach
    }

    /// The elements have been listed; the array itself adds nothing.
    fn visit_array(&mut self, _: RawArray<'_>, _: &mut Option<usize>) -> Result<bool> {
        self.found = true;
        Ok(false)
    }
}

impl Considered {
    fn append_values(&self, details: &mut DocBuf) {
        if let [only] = &self.values[..] {
            details.append("consideredValue", only.or_null());
            return;
        }
        let list: ArrayBuf = self.values.iter().take(CONSIDERED_MAX).map(Value::or_null).collect();
        details.append("consideredValues", &list);
        if self.values.len() > CONSIDERED_MAX {
            details.append("consideredValuesTruncated", true);
        }
    }

    fn append_types(&self, details: &mut DocBuf) {
        let types: BTreeSet<&str> = self.values.iter().map(|v| v.or_null().ty().name()).collect();
        match types.first() {
            None => {}
            Some(only) if types.len() == 1 => {
                details.append("consideredType", *only);
            }
            Some(_) => {
                details.append_array("consideredTypes", |list| push_all(list, types.iter()));
            }
        }
    }
}

/// What is said of an operator.
struct Words {
    failed: &'static str,
    matched: &'static str,
    /// The types it has a meaning for; none listed: all.
    expects: &'static [&'static str],
    reach: Reach,
}

impl Words {
    fn of(name: &str) -> Option<Words> {
        let say = |failed, matched| Words { failed, matched, expects: &[], reach: Reach::Elements };
        Some(match name {
            "$eq" | "$ne" | "$gt" | "$gte" | "$lt" | "$lte" => say("comparison failed", "comparison succeeded"),
            "$in" | "$nin" => say("no matching value found in array", "matching value found in array"),
            "$exists" => say("path does not exist", "path does exist"),
            "$type" => say("type did not match", "type did match"),
            "$mod" => Words {
                expects: &["decimal", "double", "int", "long"],
                ..say("$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder")
            },
            "$regex" => Words {
                expects: &["regex", "string", "symbol"],
                ..say("regular expression did not match", "regular expression did match")
            },
            "$bitsAllSet" | "$bitsAllClear" | "$bitsAnySet" | "$bitsAnyClear" => Words {
                expects: &["binData", "decimal", "double", "int", "long"],
                ..say("bitwise operator failed to match", "bitwise operator matched successfully")
            },
            "$size" => Words {
                expects: &["array"],
                reach: Reach::Itself,
                ..say("array length was not equal to given size", "array length was equal to given size")
            },
            "$elemMatch" => Words {
                expects: &["array"],
                reach: Reach::Itself,
                ..say("array did not satisfy the child predicate", "array did satisfy the child predicate")
            },
            "$all" => Words {
                reach: Reach::Itself,
                ..say("array did not contain all specified values", "array did contain all specified values")
            },
            _ => return None,
        })
    }
}

/// The conditions of a filter, one by one; `$comment` is none.
fn clauses(filter: RawDoc<'_>) -> Vec<Clause<'_>> {
    let mut found = Vec::new();
    for elem in filter {
        let name = elem.name();
        match elem.value() {
            _ if name == "$comment" => {}
            argument if parse::is_top_operator(name) => found.push(Clause::Top { name, argument }),
            ValueRef::Document(doc) if parse::is_operators(doc, false) => found.extend(operators(name, doc)),
            value => found.push(Clause::Plain { path: name, value }),
        }
    }
    found
}

fn operators<'a>(path: &'a str, doc: RawDoc<'a>) -> Vec<Clause<'a>> {
    let of = |elem: Elem<'a>| Clause::Operator { path, name: elem.name(), argument: elem.value(), siblings: doc };
    doc.iter().filter(|elem| elem.name() != "$options").map(of).collect()
}

fn plain_name(value: ValueRef<'_>) -> &'static str {
    if let ValueRef::Regex(..) = value { "$regex" } else { "$eq" }
}

impl Clause<'_> {
    /// The condition as it was written; a `$regex` with all that stands beside it.
    fn specification(self) -> DocBuf {
        let mut spec = DocBuf::new();
        match self {
            Clause::Top { name, argument } => spec.append(name, argument),
            Clause::Plain { path, value } => spec.append(path, value),
            Clause::Operator { path, name: "$regex", siblings, .. } => spec.append(path, siblings),
            Clause::Operator { path, name, argument, .. } => spec.append_doc(path, |inner| {
                inner.append(name, argument);
            }),
        };
        spec
    }

    /// A filter of this condition alone.
    fn to_filter(self) -> DocBuf {
        match self {
            Clause::Operator { path, name: "$regex", siblings, .. } => {
                let mut filter = DocBuf::new();
                filter.append_doc(path, |inner| {
                    for elem in siblings.iter().filter(|e| matches!(e.name(), "$regex" | "$options")) {
                        inner.append_elem(elem);
                    }
                });
                filter
            }
            _ => self.specification(),
        }
    }
}

fn push_all<'s>(list: &mut ArrayBuf, names: impl Iterator<Item = &'s &'s str>) {
    for name in names {
        list.push(*name);
    }
}

fn named(operator: &str) -> DocBuf {
    let mut details = DocBuf::new();
    details.append("operatorName", operator);
    details
}

fn satisfied(yes: bool) -> &'static str {
    if yes { "clausesSatisfied" } else { "clausesNotSatisfied" }
}

fn push_indexed(list: &mut ArrayBuf, index: usize, details: &DocBuf) {
    list.push_doc(|entry| {
        entry.append("index", i32::try_from(index).unwrap_or(i32::MAX));
        entry.append("details", details);
    });
}
