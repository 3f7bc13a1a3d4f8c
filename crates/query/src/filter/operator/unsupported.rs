//! Operators that MongoDB has and Espalier refuses by name: geometry, text search and JavaScript.

use super::{Operator, Place};

const fn on_field(name: &'static str, doc: &'static str) -> Operator {
    Operator { name, place: Place::FieldUnsupported, doc }
}

const fn on_top(name: &'static str, doc: &'static str) -> Operator {
    Operator { name, place: Place::TopUnsupported, doc }
}

pub(super) const GEO_INTERSECTS: Operator = on_field("$geoIntersects", "Geometries that meet the given one.");
pub(super) const GEO_NEAR: Operator = on_field("$geoNear", "Old name of $near.");
pub(super) const GEO_WITHIN: Operator = on_field("$geoWithin", "Geometries inside the given one.");
pub(super) const MAX_DISTANCE: Operator = on_field("$maxDistance", "How far $near looks.");
pub(super) const MIN_DISTANCE: Operator = on_field("$minDistance", "How far away $near begins to look.");
pub(super) const NEAR: Operator = on_field("$near", "Places in order of their distance.");
pub(super) const NEAR_SPHERE: Operator = on_field("$nearSphere", "Places in order of their distance on a sphere.");
pub(super) const TEXT: Operator = on_top("$text", "Documents found by a text index.");
pub(super) const WHERE: Operator = on_top("$where", "Documents for which a JavaScript function says true.");
pub(super) const WITHIN: Operator = on_field("$within", "Old name of $geoWithin.");
