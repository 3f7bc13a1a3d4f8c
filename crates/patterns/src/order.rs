//! The order of a source's documents in a declaration, made total by `_id`.

use std::sync::Arc;

use espalier_query::expression::Scope;
use espalier_query::sort::Sort;
use espalier_value::number::Number;
use espalier_value::{DocBuf, Path, RawDoc, Result};

use crate::fields::Fields;

/// A sort, and its fields with whether they descend.
pub type Order = (Arc<Sort>, Vec<(Path, bool)>);

/// Reads an order; `turned` is the same from its end.
pub fn parse(fields: &Fields<'_>, at: &str, spec: RawDoc<'_>, turned: bool) -> Result<Order> {
    let mut by: Vec<(Path, bool)> = Vec::new();
    for elem in spec {
        let at = format!("{at}.{}", elem.name());
        let descending = match Number::of(elem.value()).and_then(Number::as_exact_i64) {
            Some(1) => false,
            Some(-1) => true,
            _ => return Err(fields.error(&at, format!("must be 1 or -1, not {}", elem.value()))),
        };
        let path = if elem.name() == "_id" { Path::new("_id") } else { fields.checked_path(&at, elem.name())? };
        by.push((path, descending != turned));
    }
    if by.is_empty() {
        return Err(fields.error(at, "must name at least one field"));
    }
    if !by.iter().any(|(path, _)| path.as_str() == "_id") {
        by.push((Path::new("_id"), turned));
    }
    let mut total = DocBuf::new();
    for (path, descending) in &by {
        total.append(path.as_str(), if *descending { -1 } else { 1 });
    }
    let sort = Sort::parse(total.as_raw(), &Scope::default()).map_err(|error| fields.error(at, error.message()))?;
    let sort = sort.ok_or_else(|| fields.error(at, "must name at least one field"))?;
    Ok((Arc::new(sort), by))
}
