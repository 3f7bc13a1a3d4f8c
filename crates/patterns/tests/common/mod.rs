//! What the tests of all patterns share: a store in memory, and commands in words.
#![allow(clippy::unwrap_used, dead_code)]

pub mod counters;

pub mod followers;
pub mod orders;
pub mod reviews;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use espalier_engine::{Engine, EngineOptions};
use espalier_patterns::Patterned;
use espalier_query::expression::Scope;
use espalier_query::projection::{Kind, Projection};
use espalier_query::sort::Sort;
use espalier_query::stage::{Pipeline, Run};
use espalier_query::update::Update as UpdateSpec;
use espalier_query::{Context, Filter};
use espalier_store::{
    Begin, CollectionOptions, Delete, Find, Insert, Inserted, Layer, Mode, Namespace, Store, Transaction, Update,
    Updated,
};
use espalier_value::{ArrayBuf, DocBuf, RawDoc, Result, ValueRef};

/// A document in words: JSON, with whole numbers as int32.
pub fn json(text: &str) -> DocBuf {
    let mut rest = text;
    let mut out = DocBuf::new();
    out.append_with(|bytes| value(&mut rest, "", bytes));
    let outer = out.as_raw().iter().next().map(|elem| elem.value());
    match outer {
        Some(ValueRef::Document(doc)) if rest.trim().is_empty() => DocBuf::from_raw(doc),
        _ => panic!("no document: {text}"),
    }
}

fn value(rest: &mut &str, name: &str, out: &mut Vec<u8>) {
    use espalier_value::{Type, begin_nested, end_nested, push_elem};
    *rest = rest.trim_start();
    match rest.as_bytes()[0] {
        open @ (b'{' | b'[') => {
            let (ty, close) = if open == b'{' { (Type::Document, '}') } else { (Type::Array, ']') };
            *rest = &rest[1..];
            let start = begin_nested(out, ty, name.as_bytes());
            let mut count = 0;
            loop {
                *rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
                if let Some(after) = rest.strip_prefix(close) {
                    *rest = after;
                    break;
                }
                let name = if open == b'{' { key(rest) } else { count.to_string() };
                value(rest, &name, out);
                count += 1;
            }
            end_nested(out, start);
        }
        b'"' => {
            let text = string(rest);
            push_elem(out, name, ValueRef::String(&text));
        }
        _ => {
            let end = rest.find([',', '}', ']']).unwrap_or(rest.len());
            let word = rest[..end].trim();
            let scalar = match word {
                "true" => ValueRef::Bool(true),
                "false" => ValueRef::Bool(false),
                "null" => ValueRef::Null,
                _ if word.ends_with(')') => made(word),
                _ => match word.parse::<i32>() {
                    Ok(number) => ValueRef::Int32(number),
                    Err(_) => ValueRef::Double(word.parse().unwrap_or_else(|_| panic!("{word}"))),
                },
            };
            push_elem(out, name, scalar);
            *rest = &rest[end..];
        }
    }
}

/// `date(minutes)`, `long(5)`, `decimal(1.5)`: what JSON has no words for.
fn made(word: &str) -> ValueRef<'static> {
    let (kind, argument) = word.trim_end_matches(')').split_once('(').unwrap();
    match kind {
        "date" => ValueRef::DateTime((argument.parse::<f64>().unwrap() * 60_000.0) as i64),
        "long" => ValueRef::Int64(argument.parse().unwrap()),
        "decimal" => ValueRef::Decimal(argument.parse().unwrap()),
        _ => panic!("{word}"),
    }
}

/// A name with or without quotes, and the colon behind it.
fn key(rest: &mut &str) -> String {
    let name = if rest.starts_with('"') {
        string(rest)
    } else {
        let end = rest.find(':').unwrap();
        let name = rest[..end].trim().to_string();
        *rest = &rest[end..];
        name
    };
    *rest = rest.trim_start().strip_prefix(':').unwrap();
    name
}

fn string(rest: &mut &str) -> String {
    let (text, after) = rest[1..].split_once('"').unwrap();
    *rest = after;
    text.to_string()
}

/// A command's context; each has randomness of its own, as on a server.
pub fn context() -> Arc<Context> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let seed = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0xD1B5_4A32_D192_ED03);
    Arc::new(Context::new(1_700_000_000_000, seed))
}

pub struct Db {
    pub store: Arc<Patterned>,
    pub engine: Engine,
}

pub fn ns(name: &str) -> Namespace {
    Namespace::new("shop", name)
}

impl Db {
    pub fn new() -> Db {
        let (engine, _) = Engine::open(EngineOptions::default()).unwrap();
        Db { store: Arc::new(Patterned::open(Arc::new(engine.clone())).unwrap()), engine }
    }

    pub fn begin(&self) -> Box<dyn Transaction> {
        self.begin_as(Mode::Auto, false)
    }

    pub fn begin_as(&self, mode: Mode, raw: bool) -> Box<dyn Transaction> {
        self.store.begin(Begin { mode, want_changes: false, raw, context: context() }).unwrap()
    }

    pub fn create(&self, name: &str, options: &str) -> Result<()> {
        let listed = json(options);
        let options = CollectionOptions { layer: Layer::of(listed.as_raw()), listed, ..CollectionOptions::default() };
        let mut tx = self.begin();
        tx.create(&ns(name), &options)?;
        tx.commit().map(|_| ())
    }

    /// `collMod` with these patterns.
    pub fn modify(&self, name: &str, options: &str) -> Result<()> {
        let listed = json(options);
        let options = CollectionOptions { layer: Layer::of(listed.as_raw()), listed, ..CollectionOptions::default() };
        let mut tx = self.begin();
        tx.set_options(&ns(name), &options)?;
        tx.commit().map(|_| ())
    }

    pub fn insert(&self, name: &str, docs: &[DocBuf]) -> Result<Inserted> {
        let mut tx = self.begin();
        let done = insert(&mut *tx, name, docs)?;
        tx.commit()?;
        Ok(done)
    }

    pub fn update(&self, name: &str, filter: &str, update: &str) -> Result<Updated> {
        self.update_with(name, filter, update, |_| {})
    }

    pub fn update_with(
        &self,
        name: &str,
        filter: &str,
        update: &str,
        how: impl FnOnce(&mut Update),
    ) -> Result<Updated> {
        let mut tx = self.begin();
        let mut spec = update_spec(filter, update)?;
        how(&mut spec);
        let done = tx.update(&ns(name), &spec)?;
        tx.commit()?;
        Ok(done)
    }

    pub fn delete(&self, name: &str, filter: &str, multi: bool) -> Result<u64> {
        let mut tx = self.begin();
        let done = tx.delete(&ns(name), &delete_spec(filter, multi)?)?.deleted;
        tx.commit()?;
        Ok(done)
    }

    pub fn find(&self, name: &str, filter: &str) -> Vec<DocBuf> {
        self.find_with(name, filter, |_| {}).unwrap()
    }

    pub fn find_with(&self, name: &str, filter: &str, how: impl FnOnce(&mut Find)) -> Result<Vec<DocBuf>> {
        find(&*self.begin(), name, filter, how)
    }

    /// The stored documents.
    pub fn raw(&self, name: &str, filter: &str) -> Vec<DocBuf> {
        find(&*self.begin_as(Mode::Auto, true), name, filter, |f| {
            f.sort = Sort::parse(json("{\"batchNumber\": 1}").as_raw(), &Scope::default()).unwrap().map(Arc::new);
        })
        .unwrap()
    }

    pub fn validate(&self, name: &str, repair: bool) -> DocBuf {
        let mut tx = self.begin();
        let report = tx.validate(&ns(name), true, repair).unwrap();
        tx.commit().unwrap();
        report
    }

    /// The report is of one snapshot, so it is clean while others write.
    pub fn assert_valid(&self, name: &str) {
        let report = self.validate(name, false);
        assert!(matches!(report.as_raw().get("valid"), Some(ValueRef::Bool(true))), "{report:?}");
    }
}

pub fn insert(tx: &mut dyn Transaction, name: &str, docs: &[DocBuf]) -> Result<Inserted> {
    let docs: Vec<RawDoc<'_>> = docs.iter().map(DocBuf::as_raw).collect();
    tx.insert(
        &ns(name),
        &docs,
        &Insert { ordered: true, bypass_validation: false, statements: None, context: context() },
    )
}

pub fn find(at: &dyn Transaction, name: &str, filter: &str, how: impl FnOnce(&mut Find)) -> Result<Vec<DocBuf>> {
    let filter = Arc::new(Filter::parse(json(filter).as_raw(), &Scope::default())?);
    let mut find = Find::new(filter, context());
    how(&mut find);
    let mut cursor = at.find(&ns(name), &find)?;
    let mut docs = Vec::new();
    while cursor.advance()? {
        docs.push(DocBuf::from_raw(cursor.doc()));
    }
    Ok(docs)
}

/// What a pipeline gives, run as a server runs it.
pub fn aggregate(at: &dyn Transaction, name: &str, stages: &str) -> Result<Vec<DocBuf>> {
    aggregate_in(at, name, stages, context()).map(|(docs, _)| docs)
}

/// As [`aggregate`]. Gives what was asked of the store, too.
pub fn aggregate_in(
    at: &dyn Transaction,
    name: &str,
    stages: &str,
    context: Arc<Context>,
) -> Result<(Vec<DocBuf>, Find)> {
    let wrapped = json(&format!("{{\"p\": {stages}}}"));
    let stages = wrapped.as_raw().get("p").and_then(ValueRef::as_array).unwrap();
    let pipeline = Pipeline::parse(stages, &Scope::of(&context), &context)?;
    let leading = pipeline.leading();
    let mut find = Find::new(leading.filter.clone(), context.clone());
    (find.sort, find.skip, find.limit) = (leading.sort.clone(), leading.skip, leading.limit);
    find.group = leading.group.clone();
    let mut results = pipeline.run(at.find(&ns(name), &find)?, &Run::new(context))?;
    let mut docs = Vec::new();
    while results.advance()? {
        docs.push(DocBuf::from_raw(results.doc()));
    }
    Ok((docs, find))
}

pub fn projection(text: &str, filter: &str) -> Option<Arc<Projection>> {
    let (spec, filter) = (json(text), json(filter));
    let parsed = Projection::parse(spec.as_raw(), &Scope::default(), Kind::Find).unwrap();
    Some(Arc::new(parsed.with_filter(filter.as_raw(), &Scope::default()).unwrap()))
}

/// `update` is a document, or a pipeline in brackets.
pub fn update_spec(filter: &str, update: &str) -> Result<Update> {
    let wrapped = json(&format!("{{\"u\": {update}}}"));
    let value = wrapped.as_raw().get("u").unwrap();
    let filter = Arc::new(Filter::parse(json(filter).as_raw(), &Scope::default())?);
    let spec = Arc::new(UpdateSpec::parse(value, &[], &Scope::default())?);
    Ok(Update { new_id: [9; 12], ..Update::new(filter, spec, context()) })
}

pub fn delete_spec(filter: &str, multi: bool) -> Result<Delete> {
    let filter = Arc::new(Filter::parse(json(filter).as_raw(), &Scope::default())?);
    Ok(Delete { multi, ..Delete::new(filter, context()) })
}

pub fn numbers(count: usize) -> ArrayBuf {
    let values: Vec<ValueRef<'static>> = (0..count as i32).map(ValueRef::Int32).collect();
    values.into_iter().collect()
}

/// A document without the fields that patterns own.
pub fn plain(doc: &DocBuf, owned: &[&str]) -> DocBuf {
    let mut out = DocBuf::new();
    for elem in doc.as_raw() {
        if !owned.contains(&elem.name()) {
            out.append_elem(elem);
        }
    }
    out
}

/// A small generator of random numbers: the same every time for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }
}
