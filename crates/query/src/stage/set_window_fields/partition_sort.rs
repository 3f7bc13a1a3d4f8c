//! The sort in front of a `$setWindowFields` whose partitions are computed: by the expression, then by `sortBy`.

use std::sync::Arc;

use espalier_value::{RawDoc, Result};

use super::{SET_WINDOW_FIELDS, partition};
use crate::expression::{Deps, Env, Expression};
use crate::sort::Sort;
use crate::stage::sort_input::SortInput;
use crate::stage::sorter::{Sorted, Sorter};
use crate::stage::{Run, Stage};
use crate::stream::Stream;

#[derive(Debug)]
pub(super) struct PartitionSort {
    pub by: Arc<Expression>,
    pub sort: Option<Sort>,
}

impl Stage for PartitionSort {
    fn name(&self) -> &'static str {
        SET_WINDOW_FIELDS.name
    }

    fn run(self: Arc<Self>, input: Box<dyn Stream>, run: &Run) -> Result<Box<dyn Stream>> {
        Ok(Box::new(Sorting { stage: self, run: run.clone(), input: Some(input), sorted: None }))
    }

    fn needs(&self, after: &Deps) -> Deps {
        let mut needs = after.clone();
        needs.merge(&self.by.dependencies());
        // A number in the path may be an array index, which is no field: the whole top-level field is read.
        self.sort.iter().flat_map(Sort::fields).for_each(|field| needs.add(field.path.first()));
        needs
    }
}

struct Sorting {
    stage: Arc<PartitionSort>,
    run: Run,
    /// Gone once it has been sorted.
    input: Option<Box<dyn Stream>>,
    sorted: Option<Sorted>,
}

impl Stream for Sorting {
    fn advance(&mut self) -> Result<bool> {
        if let Some(mut input) = self.input.take() {
            let mut sorter = Sorter::new(SET_WINDOW_FIELDS.name, None, &self.run);
            let (stage, context) = (Arc::clone(&self.stage), Arc::clone(&self.run.context));
            let key = move |input: &dyn Stream, _: Option<&[u8]>, key: &mut Vec<u8>| {
                partition::key(&stage.by, &Env::new(input.doc(), &context), key)?;
                stage.sort.as_ref().map_or(Ok(()), |sort| sort.key(input.doc(), key)).map(|()| true)
            };
            SortInput { key, limit: None, fields: None }.take_in(&mut *input, &mut sorter, &self.run)?;
            self.sorted = Some(sorter.finish()?);
        }
        self.sorted.as_mut().map_or(Ok(false), Sorted::advance)
    }

    fn doc(&self) -> RawDoc<'_> {
        self.sorted.as_ref().map_or(RawDoc::EMPTY, Sorted::doc)
    }
}
