//! `$sort` puts documents in order.

use std::sync::Arc;

use espalier_value::{Code, Error, RawDoc, Result, ValueRef};

use super::sort_input::SortInput;
use super::sorter::{Sorted, Sorter};
use super::{Definition, Parse, Parser, Pushdown, Run, Stage, Stages, one};
use crate::expression::Deps;
use crate::sort::Sort;
use crate::stream::Stream;

pub(super) static SORT: Definition =
    Definition { name: "$sort", parse: Parse::Stage(parse), doc: "Puts documents in order." };

#[derive(Debug)]
pub(super) struct SortStage {
    sort: Arc<Sort>,
    /// No more than so many are wanted.
    limit: Option<u64>,
}

fn parse(argument: ValueRef<'_>, parser: &Parser<'_>) -> Result<Stages> {
    let ValueRef::Document(spec) = argument else {
        return Err(Error::new(Code(15973), "the $sort key specification must be an object"));
    };
    match Sort::parse(spec, parser.scope)? {
        Some(sort) => one(SortStage { sort: Arc::new(sort), limit: None }),
        None => Err(Error::new(Code(15976), "$sort stage must have at least one sort key")),
    }
}

impl SortStage {
    /// For stages that are short for something with a sort in it.
    pub fn new(sort: Sort) -> SortStage {
        SortStage { sort: Arc::new(sort), limit: None }
    }
}

impl Stage for SortStage {
    fn name(&self) -> &'static str {
        SORT.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Sorting { stage: self, run: run.clone(), state: State::Unsorted(input) }))
    }

    fn ahead(&self) -> super::origin::Ahead {
        match self.limit {
            None => super::origin::Ahead::Any,
            Some(_) => super::origin::Ahead::Never,
        }
    }

    fn role(&self) -> super::places::Role<'_> {
        super::places::Role::Passes
    }

    fn needs(&self, after: &Deps) -> Deps {
        let mut needs = after.clone();
        // A number in the path may be an array index, which is no field: the whole top-level field is read.
        self.sort.fields().iter().for_each(|field| needs.add(field.path.first()));
        needs
    }

    fn pushdown(&self) -> Option<Pushdown<'_>> {
        Some(Pushdown::Sort(&self.sort, self.limit))
    }

    fn first(&self, count: u64) -> Option<Arc<dyn Stage>> {
        let limit = self.limit.map_or(count, |limit| limit.min(count));
        Some(Arc::new(SortStage { sort: self.sort.clone(), limit: Some(limit) }))
    }
}

struct Sorting {
    stage: Arc<SortStage>,
    run: Run,
    state: State,
}

enum State {
    Unsorted(Box<dyn Stream>),
    Sorted(Sorted),
}

impl Stream for Sorting {
    fn advance(&mut self) -> Result<bool> {
        if let State::Unsorted(input) = &mut self.state {
            self.run.context.work.sorts();
            let mut sorter = Sorter::new("Sort", self.stage.limit, &self.run);
            let stage = Arc::clone(&self.stage);
            let key = move |input: &dyn Stream, bound: Option<&[u8]>, key: &mut Vec<u8>| {
                stage.sort.key_below(input.doc(), bound, key)
            };
            SortInput { key, limit: self.stage.limit, fields: None }.take_in(&mut **input, &mut sorter, &self.run)?;
            self.state = State::Sorted(sorter.finish()?);
        }
        match &mut self.state {
            State::Sorted(sorted) => sorted.advance(),
            State::Unsorted(_) => Ok(false),
        }
    }

    fn doc(&self) -> RawDoc<'_> {
        match &self.state {
            State::Sorted(sorted) => sorted.doc(),
            State::Unsorted(_) => RawDoc::EMPTY,
        }
    }
}
