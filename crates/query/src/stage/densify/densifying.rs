//! Running `$densify` over documents that come in order.

use std::collections::HashMap;
use std::sync::Arc;

use espalier_value::{Code, DocBuf, Error, RawDoc, Result, Value};

use super::step::Scalar;
use super::{Bounds, Densify, GENERATED_MAX, too_many};
use crate::expression::field_path;
use crate::stage::Run;
use crate::stream::Stream;

pub(super) struct Densifying {
    stage: Arc<Densify>,
    input: Box<dyn Stream>,
    run: Run,
    phase: Phase,
    /// By the key of their values.
    places: HashMap<Box<[u8]>, usize>,
    partitions: Vec<Partition>,
    partition_bytes: usize,
    /// The least and the greatest value seen.
    least: Option<Scalar>,
    greatest: Option<Scalar>,
    key: Vec<u8>,
    generated_count: u64,
    generated: DocBuf,
    /// The current document is a made one.
    shows_generated: bool,
}

struct Partition {
    /// Of the partition fields.
    values: Vec<Value<'static>>,
    /// The value that the next made document has.
    next: Scalar,
    /// A value at or beyond the upper bound was seen.
    is_done: bool,
}

#[derive(Clone, Copy)]
enum Phase {
    Reading,
    /// The input stands at a document; what lies before its value in the partition comes first.
    Filling {
        partition: usize,
        value: Scalar,
    },
    /// The input is at its end; partitions from this one on are to be filled up.
    Ending(usize),
}

/// Where filling stops.
#[derive(Clone, Copy)]
enum Until {
    Before(Scalar),
    Through(Scalar),
}

impl Densifying {
    pub fn new(stage: Arc<Densify>, input: Box<dyn Stream>, run: &Run) -> Densifying {
        Densifying {
            stage,
            input,
            run: run.clone(),
            phase: Phase::Reading,
            places: HashMap::new(),
            partitions: Vec::new(),
            partition_bytes: 0,
            least: None,
            greatest: None,
            key: Vec::new(),
            generated_count: 0,
            generated: DocBuf::new(),
            shows_generated: false,
        }
    }

    /// Reads a document. True if it goes out as it is.
    fn read(&mut self) -> Result<bool> {
        let doc = self.input.doc();
        let field = field_path::walk(doc, &self.stage.field);
        if field.is_nullish() {
            return Ok(true);
        }
        let values: Vec<Value<'_>> = self.stage.partition_by.iter().map(|path| field_path::walk(doc, path)).collect();
        self.key.clear();
        for value in &values {
            // Null and missing are two partitions.
            self.key.push(u8::from(!value.is_missing()));
            self.run.context.collator().encode(&mut self.key, value.or_null());
        }
        let known = self.places.get(&self.key[..]).copied();
        if known.is_some_and(|at| self.partitions[at].is_done) {
            return Ok(true);
        }
        let Some(value) = self.stage.step.read(&field)? else { return Ok(true) };
        let partition = match known {
            Some(at) => at,
            None => {
                let values = values.into_iter().map(Value::into_owned).collect();
                self.add_partition(values, value)?
            }
        };
        self.least.get_or_insert(value);
        self.greatest = Some(value);
        self.phase = Phase::Filling { partition, value };
        Ok(false)
    }

    /// A partition whose first value is this.
    fn add_partition(&mut self, values: Vec<Value<'static>>, value: Scalar) -> Result<usize> {
        let next = match self.stage.bounds {
            Bounds::Full => self.least.unwrap_or(value),
            Bounds::Partition => value,
            Bounds::Range(lower, _) => self.stage.step.start(lower)?,
        };
        let held: usize = values.iter().map(|value| size_of::<Value<'static>>() + value.heap_bytes()).sum();
        self.partition_bytes += held + self.key.len() + size_of::<Partition>();
        let limit = self.run.limits.stage_memory_bytes_max;
        if self.partition_bytes > limit {
            let message = format!(
                "$densify exceeded its memory limit of {limit} bytes with {} partitions",
                self.partitions.len()
            );
            return Err(Error::new(Code(6007200), message));
        }
        let at = self.partitions.len();
        self.partitions.push(Partition { values, next, is_done: false });
        self.places.insert(self.key[..].into(), at);
        Ok(at)
    }

    /// Makes the next document of a partition, if there is one.
    fn generate(&mut self, at: usize, until: Until) -> Result<bool> {
        let Some(partition) = self.partitions.get_mut(at) else { return Ok(false) };
        let goes_on = match until {
            Until::Before(limit) => partition.next.compare(limit).is_lt(),
            Until::Through(limit) => partition.next.compare(limit).is_le(),
        };
        if !goes_on {
            return Ok(false);
        }
        let Some(generator) = &self.stage.generator else {
            return Err(Error::new(Code(5733306), "DocGenerator cannot include field that is being densified"));
        };
        self.generated_count += 1;
        if self.generated_count > GENERATED_MAX {
            return Err(too_many());
        }
        self.generated.clear();
        for setter in generator {
            let values = partition.values.iter().map(Value::as_ref).chain([Some(partition.next.value())]);
            let values = values.skip(setter.values.start).take(setter.values.len());
            let mut set = DocBuf::new();
            setter.projection.apply_bound(self.generated.as_raw(), values, &self.run.context, &mut set)?;
            self.generated = set;
        }
        partition.next = self.stage.step.after(partition.next)?;
        self.shows_generated = true;
        Ok(true)
    }

    /// Goes on behind a document of the partition, with the type its value has.
    fn pass(&mut self, at: usize, value: Scalar) -> Result<()> {
        let Some(partition) = self.partitions.get_mut(at) else { return Ok(()) };
        if let Bounds::Range(_, upper) = self.stage.bounds
            && value.compare(upper).is_ge()
        {
            partition.is_done = true;
        } else if partition.next == value {
            partition.next = self.stage.step.after(value)?;
        }
        Ok(())
    }

    /// Before the first document of a range without partitions, and for an empty input.
    fn without_documents(&mut self) -> Result<()> {
        if let Bounds::Range(lower, _) = self.stage.bounds {
            self.key.clear();
            self.add_partition(vec![Value::Missing; self.stage.partition_by.len()], lower)?;
        }
        Ok(())
    }
}

impl Stream for Densifying {
    fn advance(&mut self) -> Result<bool> {
        loop {
            self.run.context.interrupt.check()?;
            self.shows_generated = false;
            match self.phase {
                Phase::Reading => {
                    if self.input.advance()? {
                        if self.read()? {
                            return Ok(true);
                        }
                    } else {
                        if self.partitions.is_empty() {
                            self.without_documents()?;
                        }
                        self.phase = Phase::Ending(0);
                    }
                }
                Phase::Filling { partition, value } => {
                    let until = match self.stage.bounds {
                        Bounds::Range(_, upper) if upper.compare(value).is_lt() => upper,
                        _ => value,
                    };
                    if self.generate(partition, Until::Before(until))? {
                        return Ok(true);
                    }
                    self.pass(partition, value)?;
                    self.phase = Phase::Reading;
                    return Ok(true);
                }
                Phase::Ending(at) => {
                    let until = match (self.stage.bounds, self.greatest) {
                        _ if at >= self.partitions.len() => return Ok(false),
                        (Bounds::Range(_, upper), _) => Until::Before(upper),
                        (Bounds::Full, Some(greatest)) => Until::Through(greatest),
                        _ => return Ok(false),
                    };
                    if !self.partitions[at].is_done && self.generate(at, until)? {
                        return Ok(true);
                    }
                    self.phase = Phase::Ending(at + 1);
                }
            }
        }
    }

    fn doc(&self) -> RawDoc<'_> {
        if self.shows_generated { self.generated.as_raw() } else { self.input.doc() }
    }
}
