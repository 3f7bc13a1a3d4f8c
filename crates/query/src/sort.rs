//! Sort specifications: `{a: 1, "b.c": -1}`. A document's sort key is one memcomparable byte string.

use espalier_value::number::Number;
use espalier_value::{Code, DocBuf, Error, Path, RawDoc, Result, ValueRef, key};

/// A parsed sort.
#[derive(Clone, Debug)]
pub struct Sort {
    fields: Vec<SortField>,
    source: DocBuf,
}

#[derive(Clone, Debug)]
pub struct SortField {
    pub path: Path,
    pub descending: bool,
}

/// `{$natural: 1}` is not a sort but an order of reading.
#[derive(Clone, Debug)]
pub enum Order {
    Fields(Sort),
    Natural { reverse: bool },
}

const FIELDS_MAX: usize = 32;

impl Sort {
    /// The `sort` of a `find`: fields, or `$natural` alone. An empty document is no sort: `None`.
    pub fn parse_order(spec: RawDoc<'_>) -> Result<Option<Order>> {
        if let Some(first) = spec.first()
            && first.name() == "$natural"
        {
            let direction = Number::of(first.value()).and_then(Number::as_exact_i64);
            return match (direction, spec.count()) {
                (Some(d @ (1 | -1)), 1) => Ok(Some(Order::Natural { reverse: d < 0 })),
                (_, 1) => Err(Error::bad_value("$natural sort cannot be set to a value other than -1 or 1.")),
                _ => Err(Error::bad_value("Cannot include '$natural' in compound sort")),
            };
        }
        Ok(Sort::parse(spec)?.map(Order::Fields))
    }

    /// Fields only, as in `$sort` and `$push`.
    pub fn parse(spec: RawDoc<'_>) -> Result<Option<Sort>> {
        let fields = spec.iter().map(|e| parse_field(e.name(), e.value())).collect::<Result<Vec<_>>>()?;
        if fields.len() > FIELDS_MAX {
            return Err(Error::new(Code(13103), "too many compound keys"));
        }
        Ok((!fields.is_empty()).then(|| Sort { fields, source: DocBuf::from_raw(spec) }))
    }

    pub fn fields(&self) -> &[SortField] {
        &self.fields
    }

    pub fn source(&self) -> RawDoc<'_> {
        self.source.as_raw()
    }

    /// Appends the document's sort key. An array sorts by its least element ascending and its greatest descending;
    /// a missing field sorts as null, an empty array below it.
    pub fn key(&self, doc: RawDoc<'_>, out: &mut Vec<u8>) -> Result<()> {
        // Two fields through one array would have to be taken from the same element; MongoDB refuses parallel arrays.
        let mut arrays: Option<&str> = None;
        for field in &self.fields {
            let mut best: Option<Vec<u8>> = None;
            let mut through_array = false;
            collect(ValueRef::Document(doc), field.path.parts(), &mut through_array, &mut |value| {
                let mut encoded = Vec::with_capacity(16);
                key::encode_directed(&mut encoded, value, field.descending);
                if best.as_ref().is_none_or(|b| encoded < *b) {
                    best = Some(encoded);
                }
            });
            if through_array {
                match arrays {
                    Some(first) if first != field.path.first() => {
                        return Err(Error::bad_value(format!(
                            "cannot sort with keys that are parallel arrays: [{first}] [{}]",
                            field.path.first()
                        )));
                    }
                    _ => arrays = Some(field.path.first()),
                }
            }
            match best {
                Some(encoded) => out.extend_from_slice(&encoded),
                None => key::encode_directed(out, ValueRef::Null, field.descending),
            }
        }
        Ok(())
    }
}

fn parse_field(name: &str, direction: ValueRef<'_>) -> Result<SortField> {
    if name.is_empty() || name.split('.').any(str::is_empty) {
        return Err(Error::new(Code(40352), "FieldPath field names may not be empty strings."));
    }
    if name.starts_with('$') {
        return Err(Error::new(
            Code(16410),
            format!("FieldPath field names may not start with '$'. Consider using $getField or $setField. ({name})"),
        ));
    }
    if let ValueRef::Document(_) = direction {
        return Err(Error::new(Code(17312), "$meta is not supported in a sort yet; sort by fields instead"));
    }
    let Some(n) = Number::of(direction) else {
        return Err(Error::new(Code(15974), format!("Illegal key in $sort specification: {name}: {direction:?}")));
    };
    match n.as_exact_i64() {
        Some(d @ (1 | -1)) => Ok(SortField { path: Path::new(name), descending: d < 0 }),
        _ => Err(Error::new(Code(15975), "$sort key ordering must be 1 (for ascending) or -1 (for descending)")),
    }
}

/// Calls `found` for every value the path leads to, arrays opened as an index would open them.
fn collect<'a>(
    value: ValueRef<'a>,
    parts: &[espalier_value::path::Part],
    through_array: &mut bool,
    found: &mut dyn FnMut(ValueRef<'a>),
) {
    let Some((part, rest)) = parts.split_first() else {
        match value {
            ValueRef::Array(array) => {
                *through_array = true;
                if array.is_empty() {
                    found(ValueRef::Undefined);
                }
                array.iter().for_each(found);
            }
            value => found(value),
        }
        return;
    };
    match value {
        ValueRef::Document(doc) => match doc.get(part.name()) {
            Some(inner) => collect(inner, rest, through_array, found),
            None => found(ValueRef::Null),
        },
        ValueRef::Array(array) => {
            *through_array = true;
            if let Some(inner) = part.index().and_then(|i| array.get(i)) {
                return collect(inner, rest, through_array, found);
            }
            let mut any = false;
            for element in array.iter() {
                if let ValueRef::Document(_) = element {
                    any = true;
                    collect(element, parts, through_array, found);
                }
            }
            if !any {
                found(ValueRef::Null);
            }
        }
        _ => found(ValueRef::Null),
    }
}
