//! The figures that a bucket keeps about its readings, computed by the accumulators that `$group` uses.

use espalier_query::accumulator::{self, Accumulator, AccumulatorSpec};
use espalier_query::expression::{Env, Scope};
use espalier_query::{Context, Expression};
use espalier_value::number::Number;
use espalier_value::{DocBuf, Path, RawDoc, Result, Value, ValueRef};

use super::exact;

#[derive(Debug, Default)]
pub struct Stats {
    fields: Vec<Field>,
}

#[derive(Debug)]
pub struct Field {
    pub path: Path,
    /// What its figures' names begin with: `temp`.
    prefix: String,
    value: Expression,
    pub figures: Vec<Figure>,
}

/// One figure: `tempMin`.
#[derive(Debug)]
pub struct Figure {
    pub measure: Measure,
    pub name: String,
    /// Of a sum: the name of what it lacks to be exact.
    pub rest: Option<String>,
    spec: Option<AccumulatorSpec>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Measure {
    Min,
    Max,
    Sum,
    /// How many of the values are numbers: what the average is divided by.
    Count,
    Avg,
}

pub const MEASURES: [(&str, Measure); 5] = [
    ("min", Measure::Min),
    ("max", Measure::Max),
    ("sum", Measure::Sum),
    ("count", Measure::Count),
    ("avg", Measure::Avg),
];

impl Measure {
    pub fn word(self) -> &'static str {
        MEASURES.iter().find(|(_, measure)| *measure == self).map_or("", |(word, _)| word)
    }

    fn operator(self) -> Option<&'static str> {
        match self {
            Measure::Min => Some("$min"),
            Measure::Max => Some("$max"),
            Measure::Sum => Some("$sum"),
            Measure::Avg => Some("$avg"),
            Measure::Count => None,
        }
    }
}

impl Stats {
    /// Adds the figures of a field. An average brings the sum and the count along that it is made of: without them
    /// averages of several buckets could not be put together.
    pub fn add(&mut self, path: Path, mut measures: Vec<Measure>) -> Result<()> {
        if measures.contains(&Measure::Avg) {
            measures.extend([Measure::Sum, Measure::Count]);
        }
        measures.sort();
        measures.dedup();
        let prefix = prefix(&path);
        let field = format!("${path}");
        let mut figures = Vec::new();
        for measure in measures {
            let spec = match measure.operator() {
                Some(operator) => {
                    let mut spec = DocBuf::new();
                    spec.append(operator, field.as_str());
                    Some(accumulator::parse("x", ValueRef::Document(spec.as_raw()), &Scope::default())?)
                }
                None => None,
            };
            let name = format!("{prefix}{}", capital(measure.word()));
            let rest = (measure == Measure::Sum).then(|| format!("{name}Rest"));
            figures.push(Figure { measure, name, rest, spec });
        }
        let value = Expression::parse(ValueRef::String(&field), &Scope::default())?;
        self.fields.push(Field { path, prefix, value, figures });
        Ok(())
    }

    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// A figure about the values at a path.
    pub fn figure(&self, path: &Path, measure: Measure) -> Option<&Figure> {
        let field = self.fields.iter().find(|field| field.path == *path)?;
        field.figures.iter().find(|figure| figure.measure == measure)
    }

    /// The name that two figures would have.
    pub fn clash(&self) -> Option<&str> {
        let names: Vec<&str> = self.fields.iter().map(|field| field.prefix.as_str()).collect();
        names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| *name)
    }

    /// The figures of these readings.
    pub fn of<'r>(&self, readings: impl Iterator<Item = RawDoc<'r>> + Clone) -> Result<DocBuf> {
        let context = Context::default();
        let mut out = DocBuf::new();
        out.append("count", number(readings.clone().count()));
        for field in &self.fields {
            let mut states = Vec::new();
            for figure in &field.figures {
                states.push(figure.spec.as_ref().map(|spec| spec.make(RawDoc::EMPTY, &context)).transpose()?);
            }
            let mut numbers = 0;
            for reading in readings.clone() {
                let value: Value<'_> = field.value.eval(&Env::new(reading, &context))?;
                numbers += usize::from(value.as_ref().and_then(Number::of).is_some());
                for state in states.iter_mut().flatten() {
                    state.push(value.as_ref())?;
                }
            }
            for (figure, state) in field.figures.iter().zip(&mut states) {
                let Some(state) = state else {
                    out.append(&figure.name, number(numbers));
                    continue;
                };
                let total = state.finish();
                out.append(&figure.name, total.or_null());
                if let Some(name) = &figure.rest
                    && let Some(rest) = exact::rest(total.or_null(), &state.partial())
                {
                    out.append(name, rest);
                }
            }
        }
        Ok(out)
    }
}

/// `temp` for `temp`, `airTemp` for `air.temp`.
fn prefix(path: &Path) -> String {
    let mut parts = path.parts().iter().map(|part| part.name());
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |joined, part| joined + &capital(part))
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Counts are int32 as long as they fit, as a client would write them.
pub fn number(n: usize) -> ValueRef<'static> {
    i32::try_from(n).map_or(ValueRef::Int64(n as i64), ValueRef::Int32)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use espalier_value::doc;

    use super::*;

    #[test]
    fn figures_are_those_of_group() {
        let mut stats = Stats::default();
        stats.add(Path::new("air.temp"), vec![Measure::Avg, Measure::Min, Measure::Max]).unwrap();
        let readings = [
            doc! { "air": &doc! { "temp": 20 } },
            doc! { "air": &doc! { "temp": 25.5 } },
            doc! { "air": &doc! { "temp": "broken" } },
            doc! { "air": 1 },
        ];
        let figures = stats.of(readings.iter().map(DocBuf::as_raw)).unwrap();
        let expected = doc! {
            "count": 4, "airTempMin": 20, "airTempMax": "broken", "airTempSum": 45.5, "airTempCount": 2,
            "airTempAvg": 22.75,
        };
        assert_eq!(figures, expected);
        let none = stats.of(readings[3..].iter().map(DocBuf::as_raw)).unwrap();
        assert_eq!(
            none.as_raw().to_string(),
            doc! {
                "count": 1, "airTempMin": ValueRef::Null, "airTempMax": ValueRef::Null, "airTempSum": 0,
                "airTempCount": 0, "airTempAvg": ValueRef::Null,
            }
            .as_raw()
            .to_string()
        );
    }
}
