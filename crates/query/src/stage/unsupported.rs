//! Stages that MongoDB 6.0 has and Espalier does not: using one is an error that names it.

use super::{Definition, Parse};

const fn known(name: &'static str, doc: &'static str) -> Definition {
    Definition { name, parse: Parse::Unsupported, doc }
}

pub(super) static GEO_NEAR: Definition =
    known("$geoNear", "Gives documents in the order of their distance from a point.");
pub(super) static PLAN_CACHE_STATS: Definition = known("$planCacheStats", "Lists the cached query plans.");
pub(super) static SEARCH: Definition = known("$search", "Full-text search by Atlas.");
pub(super) static SEARCH_META: Definition = known("$searchMeta", "Figures about a full-text search by Atlas.");
pub(super) static SHARDED_DATA_DISTRIBUTION: Definition =
    known("$shardedDataDistribution", "Tells how data is spread over shards.");
