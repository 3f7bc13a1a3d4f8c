//! Reading a declaration of the computed pattern.

use std::sync::Arc;

use espalier_query::Expression;
use espalier_value::number::Number;
use espalier_value::{DocBuf, Path, RawDoc, Result, ValueRef};

use super::field::{Field, MEASURES, Measure};
use super::{Computed, scope};
use crate::derive::{Link, Reads, Summed};
use crate::fields::Fields;
use crate::freshness::Freshness;
use crate::kind::{Kind, Parsed};

pub static COMPUTED: Kind = Kind {
    name: "computed",
    doc: "Keeps aggregates over the documents of another collection in the document they belong to.",
    parse,
};

const FIELDS_MAX: usize = 64;

fn parse(fields: &Fields<'_>, collection: &str) -> Result<Parsed> {
    let link = Link::parse(fields, collection)?;
    let into = fields.path("into")?;
    let sums = fields.field_name("sums", || "sums".to_string())?;
    let declared = fields.doc("fields")?.ok_or_else(|| fields.error("fields", "is required"))?;
    let freshness = Freshness::parse(fields)?;
    let count = declared.count();
    if count == 0 || count > FIELDS_MAX {
        return Err(fields.error("fields", format!("must name 1 to {FIELDS_MAX} fields, not {count}")));
    }
    let mut computed = Vec::new();
    for elem in declared {
        let at = format!("fields.{}", elem.name());
        let ValueRef::Document(spec) = elem.value() else {
            return Err(fields.error(&at, format!("must be an object, not {}", elem.value().ty().name())));
        };
        fields.checked_path(&at, elem.name())?;
        let taken = elem.name() == &*sums || (elem.name() == "at" && freshness.within.is_some());
        if elem.name().contains('.') || taken {
            return Err(fields.error(&at, "is no name that a computed field can have"));
        }
        computed.push(field(fields, &at, elem.name(), spec, &into, &sums)?);
    }
    let mut reads = Reads::of(link.reads());
    for field in &computed {
        reads.add(&field.expression.dependencies());
        field.sorted_by.iter().for_each(|(path, _)| reads.add_name(path.first()));
    }
    let mut owns: Vec<Path> = computed.iter().map(|field| field.path.clone()).collect();
    if computed.iter().any(|field| field.sums.is_some()) || freshness.within.is_some() {
        owns.push(Path::new(&format!("{into}.{sums}")));
    }
    link.check_apart(fields, &owns)?;
    let mut options = DocBuf::new();
    options
        .append("from", &*link.from)
        .append("on", &link.on())
        .append("into", into.as_str())
        .append("fields", declared)
        .append("sums", &*sums)
        .append("freshness", freshness.text());
    let owned = owns.iter().map(|path| path.as_str().into()).collect();
    let noted = freshness.within.map(|_| Path::new(&format!("{into}.{sums}.at")));
    let computed = Computed { link, fields: computed, reads, owns, freshness, noted };
    Ok(Parsed::derivation(Arc::new(Summed(computed)), options, owned))
}

/// `{$avg: "$rating", round: 1}`.
fn field(fields: &Fields<'_>, at: &str, name: &str, spec: RawDoc<'_>, into: &Path, sums: &str) -> Result<Field> {
    let known: Vec<&str> = MEASURES.iter().map(|(word, _)| *word).collect();
    let Some(first) = spec.first() else {
        return Err(fields.error(at, format!("must have one of {}", known.join(", "))));
    };
    let Some((word, measure)) = MEASURES.iter().find(|(word, _)| *word == first.name()) else {
        return Err(fields.error(at, format!("'{}' is none of {}", first.name(), known.join(", "))));
    };
    if *measure == Measure::Count && !matches!(first.value(), ValueRef::Document(doc) if doc.is_empty()) {
        return Err(fields.error(&format!("{at}.$count"), "must be {}"));
    }
    let wrong = |error: espalier_value::Error| fields.error(&format!("{at}.{word}"), error.message());
    let expression = Expression::parse(first.value(), &scope()).map_err(wrong)?;
    if let Some(word) = fickle(first.value()) {
        return Err(fields.error(at, format!("{word} gives something else every time it is asked")));
    }
    let mut made = Field {
        path: Path::new(&format!("{into}.{name}")),
        measure: *measure,
        expression,
        sums: matches!(measure, Measure::Sum | Measure::Avg).then(|| Path::new(&format!("{into}.{sums}.{name}"))),
        round: None,
        sort: None,
        sorted_by: Vec::new(),
    };
    for elem in spec.iter().skip(1) {
        let at = format!("{at}.{}", elem.name());
        match (elem.name(), measure) {
            ("round", Measure::Sum | Measure::Avg) => {
                let places =
                    Number::of(elem.value()).and_then(Number::as_exact_i64).filter(|n| (-20..=100).contains(n));
                let Some(places) = places else {
                    return Err(
                        fields.error(&at, format!("must be a number of places from -20 to 100, not {}", elem.value()))
                    );
                };
                let mut round = DocBuf::new();
                round.append_array("$round", |list| {
                    list.push("$v").push(places as i32);
                });
                made.round = Some(Expression::parse(ValueRef::Document(round.as_raw()), &scope())?);
            }
            ("sort", Measure::First | Measure::Last) => sort(fields, &at, elem.value(), &mut made)?,
            _ => return Err(fields.error(&at, format!("unknown option of {word}"))),
        }
    }
    match measure {
        Measure::First | Measure::Last if made.sort.is_none() => {
            Err(fields.error(&format!("{at}.sort"), "is required: without an order there is no first and no last"))
        }
        _ => Ok(made),
    }
}

/// The order by which the first document decides; for `$last` it is turned round. `_id` breaks ties.
fn sort(fields: &Fields<'_>, at: &str, value: ValueRef<'_>, field: &mut Field) -> Result<()> {
    let ValueRef::Document(spec) = value else {
        return Err(fields.error(at, format!("must be an object, not {}", value.ty().name())));
    };
    let (parsed, by) = crate::order::parse(fields, at, spec, field.measure == Measure::Last)?;
    field.sort = Some(parsed);
    field.sorted_by = by;
    Ok(())
}

/// What in an expression depends on the moment or on chance.
fn fickle(value: ValueRef<'_>) -> Option<&'static str> {
    const OPERATORS: [&str; 3] = ["$rand", "$sampleRate", "$function"];
    const VARIABLES: [&str; 2] = ["$$NOW", "$$CLUSTER_TIME"];
    match value {
        ValueRef::String(text) => VARIABLES.into_iter().find(|name| text.starts_with(name)),
        ValueRef::Array(list) => list.iter().find_map(fickle),
        ValueRef::Document(doc) => doc
            .iter()
            .find_map(|elem| OPERATORS.into_iter().find(|name| *name == elem.name()).or_else(|| fickle(elem.value()))),
        _ => None,
    }
}
