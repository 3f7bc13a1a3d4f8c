//! The expression behind `$top`, `$bottom` and their like: for each document its sort key and its output, as the pair that
//! the accumulator takes.

use super::prelude::*;
use crate::accumulator::pair;
use crate::sort::Sort;

#[derive(Debug)]
struct SortedOutput {
    /// `None` is an empty sort: all documents are equal.
    sort: Option<Sort>,
    output: Node,
}

pub(crate) fn sorted_output(sort: Option<Sort>, output: ValueRef<'_>, scope: &Scope) -> Result<super::Expression> {
    Ok(super::Expression { root: Node::custom(SortedOutput { sort, output: operand(output, scope)? }) })
}

impl Custom for SortedOutput {
    fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Value<'a>> {
        let mut key = Vec::new();
        if let Some(sort) = &self.sort {
            sort.key(env.whole(&mut DocBuf::new()), &mut key)?;
        }
        Ok(Value::document(pair(&key, &self.output.eval(env)?)))
    }

    fn children<'s>(&'s self, visit: &mut dyn FnMut(&'s Node)) {
        visit(&self.output);
    }

    fn dependencies(&self, deps: &mut super::Deps) {
        for field in self.sort.iter().flat_map(Sort::fields) {
            deps.add(field.path.as_str());
        }
    }
}
