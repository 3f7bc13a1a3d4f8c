//! Bytes from outside: whatever they are, reading them neither panics nor finds more than is there, and what passes
//! `validate` is read the same way by an independent walk.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use espalier_value::key::{self, Decoder};
use espalier_value::{ArrayBuf, DocBuf, RawDoc, ValueRef, validate};

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }
}

/// A document with every type in it, nested.
fn sample() -> DocBuf {
    let mut inner = DocBuf::new();
    inner
        .append("double", 1.5)
        .append("string", "héllo\0wörld")
        .append("binary", ValueRef::Binary(2, &[3, 0, 0, 0, 1, 2, 3]))
        .append("undefined", ValueRef::Undefined)
        .append("id", ValueRef::ObjectId([9; 12]))
        .append("bool", true)
        .append("date", ValueRef::DateTime(-1))
        .append("null", ValueRef::Null)
        .append("regex", ValueRef::Regex("^a.*b$", "im"))
        .append("pointer", ValueRef::DbPointer("db.c", [1; 12]))
        .append("code", ValueRef::JavaScript("return 1"))
        .append("symbol", ValueRef::Symbol("s"))
        .append("int", 7)
        .append("stamp", ValueRef::Timestamp(5))
        .append("long", 1i64 << 40)
        .append("decimal", espalier_value::Decimal128::from_i64(12))
        .append("min", ValueRef::MinKey)
        .append("max", ValueRef::MaxKey);
    let mut array = ArrayBuf::new();
    array.push(1).push(&inner).push("x");
    let mut doc = DocBuf::new();
    doc.append("_id", 1).append("inner", &inner).append("array", &array);
    doc.append("scoped", ValueRef::JavaScriptWithScope("f()", inner.as_raw()));
    doc
}

/// Reads everything there is; returns how many values.
fn walk(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Document(doc) | ValueRef::JavaScriptWithScope(_, doc) => {
            1 + doc.iter().map(|e| e.name().len().min(1) + walk(e.value())).sum::<usize>()
        }
        ValueRef::Array(array) => 1 + array.iter().map(walk).sum::<usize>(),
        _ => 1,
    }
}

#[test]
fn mutated_documents_are_refused_or_read() {
    let original = sample().into_bytes();
    let mut random = Random(2024);
    let until = Instant::now() + Duration::from_millis(1500);
    let (mut accepted, mut refused) = (0u64, 0u64);
    while Instant::now() < until {
        for _ in 0..500 {
            let mut bytes = original.clone();
            for _ in 0..1 + random.below(4) {
                match random.below(4) {
                    0 => {
                        let at = random.below(bytes.len());
                        bytes[at] = random.below(256) as u8;
                    }
                    1 => bytes.truncate(random.below(bytes.len() + 1)),
                    2 => {
                        let at = random.below(bytes.len() + 1);
                        bytes.insert(at, random.below(256) as u8);
                    }
                    _ => {
                        let at = random.below(bytes.len() + 1);
                        bytes.splice(at..at, [0xFF, 0xFF, 0xFF, 0x7F]);
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            if bytes.len() >= 4 && random.below(2) == 0 {
                let len = bytes.len() as u32;
                bytes[..4].copy_from_slice(&len.to_le_bytes());
            }
            match validate(&bytes) {
                Ok(doc) => {
                    accepted += 1;
                    assert!(walk(ValueRef::Document(doc)) <= 2 * bytes.len());
                    // What was accepted survives being written again, element by element.
                    let mut copy = DocBuf::new();
                    doc.iter().for_each(|e| {
                        copy.append_elem(e);
                    });
                    assert_eq!(copy.as_bytes(), bytes.as_slice());
                    let _ = key::of(ValueRef::Document(doc));
                }
                Err(_) => {
                    refused += 1;
                    // Even unchecked, reading must not panic.
                    walk(ValueRef::Document(RawDoc::trusted(&bytes)));
                }
            }
        }
    }
    assert!(accepted > 100 && refused > 1000, "{accepted} accepted, {refused} refused");
}

#[test]
fn mutated_keys_are_read_or_refused() {
    let original = key::of(ValueRef::Document(sample().as_raw()));
    let mut random = Random(77);
    for _ in 0..50_000 {
        let mut bytes = original.clone();
        let at = random.below(bytes.len());
        bytes[at] = random.below(256) as u8;
        bytes.truncate(1 + random.below(bytes.len()));
        let descending = random.below(2) == 1;
        let read = Decoder::new(&bytes, &[]).next(descending).is_some();
        let measured = key::encoded_len(&bytes, descending);
        assert!(measured.is_none_or(|len| len <= bytes.len()));
        assert!(!read || measured.is_some());
    }
}

#[test]
fn nesting_is_bounded() {
    let mut doc = DocBuf::new();
    for _ in 0..espalier_value::DEPTH_MAX - 1 {
        let mut outer = DocBuf::new();
        outer.append("a", &doc);
        doc = outer;
    }
    assert!(validate(doc.as_bytes()).is_ok());
    let mut outer = DocBuf::new();
    outer.append("a", &doc);
    assert!(validate(outer.as_bytes()).is_err());
}
