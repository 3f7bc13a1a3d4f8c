//! How an expression depends on a date: in steps. The day of an instant is the same from midnight to midnight, so
//! whoever has many documents of one hour need compute `$dateTrunc` to the day only once for all of them.

use espalier_value::Path;

use super::Expression;
use super::date::date_trunc::truncate;
use super::date::unit::{SUNDAY, Unit};
use super::date::zone::Zone;
use super::early;
use super::node::Node;
use super::scope::Place;

/// A zone with a name changes its offset, but never there and back within so short a time.
const ONE_OFFSET_MS: i64 = 8 * 86_400_000;

/// An expression as a function of one date, constant on every step.
pub(crate) struct Dated<'a> {
    pub date: &'a Node,
    /// What else it evaluates.
    pub others: Vec<&'a Node>,
    pub step: Step,
}

/// Bins of time in a zone, on each of which a value is the same.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(in crate::expression) unit: Unit,
    pub(in crate::expression) bin: i64,
    pub(in crate::expression) first: i64,
    pub(in crate::expression) zone: Zone,
    /// Hours and minutes are those that clocks show, not counted from some instant.
    pub(in crate::expression) by_clock: bool,
}

impl Step {
    pub(in crate::expression) fn new(unit: Unit, zone: &Zone) -> Step {
        Step { unit, bin: 1, first: SUNDAY, zone: zone.clone(), by_clock: true }
    }

    fn holds(&self, first_ms: i64, last_ms: i64) -> bool {
        let one_offset = match self.zone {
            Zone::Fixed(_) => true,
            Zone::Named(_) => {
                last_ms.saturating_sub(first_ms) <= ONE_OFFSET_MS
                    && self.zone.offset_ms(first_ms) == self.zone.offset_ms(last_ms)
            }
        };
        // With one offset, bins follow each other as time goes by.
        let bin = |ms| truncate(self.unit, ms, self.bin, &self.local(ms), self.first);
        one_offset && bin(first_ms).is_some() && bin(first_ms) == bin(last_ms)
    }

    fn local(&self, ms: i64) -> Zone {
        if self.by_clock { Zone::Fixed(self.zone.offset_ms(ms)) } else { self.zone.clone() }
    }
}

/// The steps of an expression.
#[derive(Clone, Debug, Default)]
pub struct Steps(Vec<Step>);

impl Steps {
    /// Whether the value is the same for all dates from the first to the last.
    pub fn hold(&self, first_ms: i64, last_ms: i64) -> bool {
        self.0.iter().all(|step| step.holds(first_ms, last_ms))
    }
}

impl Expression {
    /// The steps in which it changes with the date at a path, if it depends on nothing else than that date and on fields
    /// that `is_fixed` says are the same.
    pub fn steps(&self, time: Option<&Path>, is_fixed: &dyn Fn(&Path) -> bool) -> Option<Steps> {
        let mut steps = Steps::default();
        collect(&self.root, time, is_fixed, &mut steps).then_some(steps)
    }
}

fn collect(node: &Node, time: Option<&Path>, is_fixed: &dyn Fn(&Path) -> bool, steps: &mut Steps) -> bool {
    let mut all = |mut nodes: &mut dyn Iterator<Item = &Node>| {
        Iterator::all(&mut nodes, |node| collect(node, time, is_fixed, steps))
    };
    match node {
        Node::Literal(_) | Node::Now | Node::ClusterTime | Node::Variable(Place::Let(_), _) => true,
        Node::Field(path) => is_fixed(path),
        Node::Root | Node::Variable(Place::Slot(_), _) => false,
        Node::Object(fields) => all(&mut fields.iter().map(|(_, node)| node)),
        Node::Array(nodes) => all(&mut nodes.iter()),
        Node::Call(call) => early::is_folded(call.operator.name) && all(&mut call.args.iter()),
        Node::Custom(custom) => {
            if let Some(dated) = custom.dated()
                && matches!(dated.date, Node::Field(path) if Some(path) == time)
            {
                let known = all(&mut dated.others.into_iter());
                steps.0.push(dated.step);
                return known;
            }
            // Only what could be computed before there is any document depends on nothing but its operands.
            let mut own = super::Deps::default();
            custom.dependencies(&mut own);
            let mut known = custom.is_foldable() && own.is_none();
            custom.children(&mut |node| known = known && collect(node, time, is_fixed, steps));
            known
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use espalier_value::{DocBuf, ValueRef, doc};

    use super::*;
    use crate::expression::Scope;

    const HOUR: i64 = 3_600_000;

    fn steps(of: &DocBuf) -> Option<Steps> {
        let expression = Expression::parse(ValueRef::Document(of.as_raw()), &Scope::default()).unwrap();
        expression.steps(Some(&Path::new("ts")), &|path| path.first() == "sensor")
    }

    fn hold(of: &DocBuf, from_h: i64, to_h: i64) -> bool {
        steps(of).unwrap().hold(from_h * HOUR, to_h * HOUR - 1)
    }

    #[test]
    fn a_day_lasts_from_midnight_to_midnight() {
        let day = doc! { "$dateTrunc": &doc! { "date": "$ts", "unit": "day" } };
        assert!(hold(&day, 0, 24) && !hold(&day, 23, 25) && !hold(&day, 0, 48));
        let text = doc! { "$dateToString": &doc! { "date": "$ts", "format": "%Y-%m-%d" } };
        assert!(hold(&text, 0, 24) && !hold(&text, 12, 36));
        let berlin = doc! { "$dateTrunc": &doc! { "date": "$ts", "unit": "day", "timezone": "Europe/Berlin" } };
        assert!(!hold(&berlin, 0, 24) && hold(&berlin, 23, 47) && hold(&berlin, 5, 6));
    }

    #[test]
    fn an_hour_of_the_day_comes_again() {
        let hour = doc! { "$hour": "$ts" };
        assert!(hold(&hour, 5, 6) && !hold(&hour, 5, 30) && !hold(&hour, 0, 24));
        let india = doc! { "$hour": &doc! { "date": "$ts", "timezone": "Asia/Kolkata" } };
        assert!(!hold(&india, 5, 6));
        assert!(steps(&india).unwrap().hold(HOUR / 2, HOUR / 2 + HOUR - 1));
    }

    #[test]
    fn a_change_of_the_offset_is_a_step() {
        // 2026-03-29 01:00 UTC, in the middle of a day.
        let at = 1_774_746_000_000 / HOUR;
        let berlin = doc! { "$dateTrunc": &doc! { "date": "$ts", "unit": "day", "timezone": "Europe/Berlin" } };
        assert!(hold(&berlin, at, at + 1) && hold(&berlin, at - 1, at) && !hold(&berlin, at - 1, at + 1));
    }

    #[test]
    fn what_depends_on_other_things_has_no_steps() {
        assert!(steps(&doc! { "a": "$sensor", "b": &doc! { "$year": "$ts" } }).is_some());
        assert!(steps(&doc! { "a": "$other" }).is_none());
        assert!(steps(&doc! { "a": "$ts" }).is_none());
        assert!(steps(&doc! { "a": "$$ROOT" }).is_none());
        assert!(steps(&doc! { "a": &doc! { "$rand": &DocBuf::new() } }).is_none());
        assert!(steps(&doc! { "$dateTrunc": &doc! { "date": "$ts", "unit": "$sensor" } }).is_none());
    }
}
