//! Whether an index scan yields the order asked for.

use espalier_query::sort::Sort;
use espalier_store::IndexKind;

use super::IndexScan;

/// How a scan can give the sort order.
#[derive(Debug, PartialEq, Eq)]
pub enum Provides {
    No,
    /// As it is, read in this direction.
    Directly {
        reverse: bool,
    },
    /// Split at the points of the first `leading` parts and merged.
    Merged {
        leading: usize,
        reverse: bool,
    },
}

pub fn provides(scan: &IndexScan, sort: &Sort) -> Provides {
    // Strings stand in another order than the sort means.
    let is_collated = scan.index.spec.collator() != sort.collator();
    let multikey = scan.index.multikey();
    let mut fields = sort.fields().iter().peekable();
    let mut reverse: Option<bool> = None;
    let mut leading = 0;
    let mut split = false;
    for (i, (part, bounds)) in scan.index.spec.parts.iter().zip(&scan.parts).enumerate() {
        let is_multikey = multikey & (1 << i) != 0;
        let Some(field) = fields.peek() else { break };
        if field.path == part.path && part.kind != IndexKind::Wildcard {
            // An array has one place in a sort but many in the index.
            if is_multikey || is_collated && bounds.may_hold_strings() {
                return Provides::No;
            }
            let opposite = field.descending != (part.kind == IndexKind::Descending);
            if *reverse.get_or_insert(opposite) != opposite {
                return Provides::No;
            }
            fields.next();
        } else if reverse.is_none() && bounds.all_points() && !bounds.intervals.is_empty() {
            leading = i + 1;
            split |= bounds.intervals.len() > 1;
        } else if reverse.is_some() && bounds.is_point() {
            // A fixed field between sorted ones changes nothing.
        } else {
            return Provides::No;
        }
    }
    if fields.next().is_some() {
        return Provides::No;
    }
    let reverse = reverse.unwrap_or(false);
    if split { Provides::Merged { leading, reverse } } else { Provides::Directly { reverse } }
}
