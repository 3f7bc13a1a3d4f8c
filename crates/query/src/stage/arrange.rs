//! Puts the stages of a pipeline in the order in which they have the least to do, with the same results.
//!
//! Conditions of a `$match` go ahead as far as they mean the same there, each by itself; a `$sort` goes ahead of
//! `$unwind`, `$skip` and `$limit` ahead of stages that make one document of one; what then stands side by side is merged.

use std::sync::Arc;

use espalier_value::{ArrayBuf, DocBuf, RawDoc, Result, ValueRef};

use super::condition::Condition;
use super::{Parser, Pushdown, Stage, Stages};

/// A stage as it is written, and what it is short for.
#[derive(Debug)]
pub(super) struct Step {
    pub source: DocBuf,
    pub stages: Stages,
    /// Those of a `$match`.
    conditions: Option<Vec<Condition>>,
    /// They are others than the source says.
    changed: bool,
}

impl Step {
    fn new(source: RawDoc<'_>, stages: Stages) -> Step {
        Step { source: DocBuf::from_raw(source), stages, conditions: None, changed: false }
    }

    fn matching(condition: Condition) -> Step {
        Step { source: DocBuf::new(), stages: Vec::new(), conditions: Some(vec![condition]), changed: true }
    }

    fn pushdown(&self) -> Option<Pushdown<'_>> {
        match &self.stages[..] {
            [stage] => stage.pushdown(),
            _ => None,
        }
    }

    /// Whether each document gives one, whatever the others are.
    fn is_single(&self) -> bool {
        const SINGLE: [&str; 2] = ["$graphLookup", "$lookup"];
        self.conditions.is_none()
            && self.stages.iter().all(|stage| stage.transform().is_some() || SINGLE.contains(&stage.name()))
    }

    /// Parses it again if it is not what its source says.
    fn settle(mut self, parser: &Parser<'_>) -> Result<Step> {
        let Some(conditions) = self.conditions.as_deref().filter(|_| self.changed) else { return Ok(self) };
        let mut source = DocBuf::new();
        match conditions {
            [condition] => {
                source.append("$match", condition.source());
            }
            conditions => {
                let all: ArrayBuf = conditions.iter().map(|condition| ValueRef::from(condition.source())).collect();
                source.append_doc("$match", |filter| {
                    filter.append("$and", &all);
                });
            }
        }
        self.stages = parser.stage(source.as_raw())?;
        self.source = source;
        Ok(self)
    }
}

/// The stages in their best order. `steps` are the stages as they are written, with what they were parsed into.
pub(super) fn arrange(steps: Vec<(RawDoc<'_>, Stages)>, parser: &Parser<'_>) -> Result<Vec<Step>> {
    let mut done: Vec<Step> = Vec::with_capacity(steps.len());
    let mut steps = steps.into_iter().peekable();
    while let Some((source, stages)) = steps.next() {
        let mut step = Step::new(source, stages);
        let filter = source.first().filter(|elem| elem.name() == "$match").and_then(|elem| elem.value().as_doc());
        match filter {
            // One that lets everything through is left where it is.
            Some(filter) if filter.is_empty() => done.push(step),
            Some(filter) if done.is_empty() => {
                step.conditions = Some(vec![Condition::unread(filter)]);
                done.push(step);
            }
            Some(filter) => {
                for condition in Condition::split(filter, parser)? {
                    place(condition, &mut done, parser)?;
                }
            }
            None => {
                // Where a `$limit` follows, only the first need be kept, but of what comes out of the `$unwind`.
                let bounded = steps.peek().and_then(|(_, next)| next.first()).is_some_and(|next| is_count(&**next));
                let at = if bounded { done.len() } else { sorts_at(&step, &done) };
                done.insert(at, step);
            }
        }
    }
    skip_first(&mut done);
    merge_counts(done, parser)?.into_iter().map(|step| step.settle(parser)).collect()
}

/// Puts a condition that comes after `done` as far ahead as it can go.
fn place(mut condition: Condition, done: &mut Vec<Step>, parser: &Parser<'_>) -> Result<()> {
    let mut at = done.len();
    while at > 0 {
        if done[at - 1].conditions.is_none() {
            match ahead_of(&condition, &done[at - 1].stages, parser)? {
                Some(ahead) => condition = ahead,
                None => break,
            }
        }
        at -= 1;
    }
    // Beside other conditions, behind them: what they refuse it need not look at.
    match done.get_mut(at) {
        Some(Step { conditions: Some(conditions), changed, .. }) => {
            conditions.push(condition);
            *changed = true;
        }
        _ => match at.checked_sub(1).and_then(|before| done.get_mut(before)) {
            Some(Step { conditions: Some(conditions), changed, .. }) => {
                conditions.push(condition);
                *changed = true;
            }
            _ => done.insert(at, Step::matching(condition)),
        },
    }
    Ok(())
}

fn ahead_of(condition: &Condition, stages: &[Arc<dyn Stage>], parser: &Parser<'_>) -> Result<Option<Condition>> {
    let mut condition = condition.clone();
    for stage in stages.iter().rev() {
        match condition.ahead_of(&**stage, parser)? {
            Some(ahead) => condition = ahead,
            None => return Ok(None),
        }
    }
    Ok(Some(condition))
}

fn is_count(stage: &dyn Stage) -> bool {
    matches!(stage.pushdown(), Some(Pushdown::Skip(_) | Pushdown::Limit(_)))
}

/// Where a step stands best: a `$sort` before `$unwind`s of other fields, anything else at the end. The documents of an
/// array follow each other in the order of the array either way, because sorting is stable.
fn sorts_at(step: &Step, done: &[Step]) -> usize {
    let Some(Pushdown::Sort(sort, None)) = step.pushdown() else { return done.len() };
    let mut at = done.len();
    while at > 0
        && let [stage] = &done[at - 1].stages[..]
        && let Some(unwind) = stage.as_unwind()
    {
        let fields = [Some(&unwind.path), unwind.index.as_ref()];
        let changes = |name: &str| fields.iter().flatten().any(|path| path.first() == name);
        if sort.fields().iter().any(|field| changes(field.path.first())) {
            break;
        }
        at -= 1;
    }
    at
}

/// Puts `$skip` and `$limit` before stages that make one document of one: for what is skipped they need not, and must
/// not, run.
fn skip_first(steps: &mut [Step]) {
    for at in 1..steps.len() {
        let mut to = at;
        while to > 0
            && matches!(steps[to].pushdown(), Some(Pushdown::Skip(_) | Pushdown::Limit(_)))
            && steps[to - 1].is_single()
        {
            steps.swap(to - 1, to);
            to -= 1;
        }
    }
}

/// Makes one `$limit` of several that follow each other, and one `$skip`.
fn merge_counts(steps: Vec<Step>, parser: &Parser<'_>) -> Result<Vec<Step>> {
    let mut merged: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        let before = merged.last().and_then(Step::pushdown);
        let both = match (before, step.pushdown()) {
            (Some(Pushdown::Limit(one)), Some(Pushdown::Limit(other))) => Some(("$limit", one.min(other))),
            (Some(Pushdown::Skip(one)), Some(Pushdown::Skip(other))) => {
                one.checked_add(other).map(|sum| ("$skip", sum))
            }
            _ => None,
        };
        match both.and_then(|(name, count)| i64::try_from(count).ok().map(|count| (name, count))) {
            Some((name, count)) => {
                let mut source = DocBuf::new();
                source.append(name, count);
                let stages = parser.stage(source.as_raw())?;
                merged.pop();
                merged.push(Step::new(source.as_raw(), stages));
            }
            None => merged.push(step),
        }
    }
    Ok(merged)
}
