//! `Value`: what an expression yields. Lent from a document where possible, owned (as encoded bytes) where computed,
//! or missing, which is not null.

use crate::decimal::Decimal128;
use crate::doc::{ArrayBuf, DocBuf, push_value};
use crate::raw::{RawArray, RawDoc, ValueRef};
use crate::types::Type;

#[derive(Clone, Debug, Default)]
pub enum Value<'a> {
    /// No such field.
    #[default]
    Missing,
    /// Lent, or a scalar.
    Ref(ValueRef<'a>),
    /// Computed: the encoding of a string, document, array, …
    Owned(OwnedValue),
}

/// The encoded bytes of a value and their type.
#[derive(Clone)]
pub struct OwnedValue {
    ty: Type,
    bytes: Vec<u8>,
}

impl OwnedValue {
    pub fn as_ref(&self) -> ValueRef<'_> {
        ValueRef::decode(self.ty as u8, &self.bytes)
    }
}

impl std::fmt::Debug for OwnedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl<'a> Value<'a> {
    pub const NULL: Value<'static> = Value::Ref(ValueRef::Null);

    /// `None` if missing.
    pub fn as_ref(&self) -> Option<ValueRef<'_>> {
        match self {
            Value::Missing => None,
            Value::Ref(v) => Some(*v),
            Value::Owned(v) => Some(v.as_ref()),
        }
    }

    /// Missing reads as null.
    pub fn or_null(&self) -> ValueRef<'_> {
        self.as_ref().unwrap_or(ValueRef::Null)
    }

    pub fn is_missing(&self) -> bool {
        matches!(self, Value::Missing)
    }

    /// Missing, null or undefined.
    pub fn is_nullish(&self) -> bool {
        self.as_ref().is_none_or(ValueRef::is_nullish)
    }

    pub fn string(s: impl AsRef<str>) -> Value<'static> {
        Value::own(ValueRef::String(s.as_ref()))
    }

    pub fn document(doc: DocBuf) -> Value<'static> {
        Value::Owned(OwnedValue { ty: Type::Document, bytes: doc.into_bytes() })
    }

    pub fn array(array: ArrayBuf) -> Value<'static> {
        Value::Owned(OwnedValue { ty: Type::Array, bytes: array.into_bytes() })
    }

    /// Copies what is lent.
    pub fn own(value: ValueRef<'_>) -> Value<'static> {
        match value.to_static() {
            Some(scalar) => Value::Ref(scalar),
            None => {
                let mut bytes = Vec::new();
                push_value(&mut bytes, value);
                Value::Owned(OwnedValue { ty: value.ty(), bytes })
            }
        }
    }

    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Missing => Value::Missing,
            Value::Ref(v) => Value::own(v),
            Value::Owned(v) => Value::Owned(v),
        }
    }

    /// Bytes held beyond the value itself: what a memory limit should count.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Value::Owned(v) => v.bytes.capacity(),
            _ => 0,
        }
    }
}

impl<'a> ValueRef<'a> {
    /// The same value with any lifetime, if it borrows nothing.
    pub fn to_static(self) -> Option<ValueRef<'static>> {
        Some(match self {
            ValueRef::Double(x) => ValueRef::Double(x),
            ValueRef::Undefined => ValueRef::Undefined,
            ValueRef::ObjectId(id) => ValueRef::ObjectId(id),
            ValueRef::Bool(b) => ValueRef::Bool(b),
            ValueRef::DateTime(ms) => ValueRef::DateTime(ms),
            ValueRef::Null => ValueRef::Null,
            ValueRef::Int32(i) => ValueRef::Int32(i),
            ValueRef::Timestamp(t) => ValueRef::Timestamp(t),
            ValueRef::Int64(i) => ValueRef::Int64(i),
            ValueRef::Decimal(d) => ValueRef::Decimal(d),
            ValueRef::MinKey => ValueRef::MinKey,
            ValueRef::MaxKey => ValueRef::MaxKey,
            ValueRef::String(_)
            | ValueRef::Document(_)
            | ValueRef::Array(_)
            | ValueRef::Binary(..)
            | ValueRef::Regex(..)
            | ValueRef::DbPointer(..)
            | ValueRef::JavaScript(_)
            | ValueRef::Symbol(_)
            | ValueRef::JavaScriptWithScope(..) => return None,
        })
    }
}

impl<'a> From<ValueRef<'a>> for Value<'a> {
    fn from(v: ValueRef<'a>) -> Value<'a> {
        Value::Ref(v)
    }
}

impl<'a> From<Option<ValueRef<'a>>> for Value<'a> {
    fn from(v: Option<ValueRef<'a>>) -> Value<'a> {
        v.map_or(Value::Missing, Value::Ref)
    }
}

macro_rules! scalar {
    ($($from:ty => $make:expr),* $(,)?) => {$(
        impl<'a> From<$from> for ValueRef<'a> {
            fn from(v: $from) -> ValueRef<'a> { $make(v) }
        }
        impl<'a> From<$from> for Value<'a> {
            fn from(v: $from) -> Value<'a> { Value::Ref($make(v)) }
        }
    )*};
}
scalar! { i32 => ValueRef::Int32, i64 => ValueRef::Int64, f64 => ValueRef::Double, bool => ValueRef::Bool, Decimal128 => ValueRef::Decimal }

impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(s: &'a str) -> ValueRef<'a> {
        ValueRef::String(s)
    }
}

impl<'a> From<&'a String> for ValueRef<'a> {
    fn from(s: &'a String) -> ValueRef<'a> {
        ValueRef::String(s)
    }
}

impl<'a> From<RawDoc<'a>> for ValueRef<'a> {
    fn from(d: RawDoc<'a>) -> ValueRef<'a> {
        ValueRef::Document(d)
    }
}

impl<'a> From<&'a DocBuf> for ValueRef<'a> {
    fn from(d: &'a DocBuf) -> ValueRef<'a> {
        ValueRef::Document(d.as_raw())
    }
}

impl<'a> From<RawArray<'a>> for ValueRef<'a> {
    fn from(a: RawArray<'a>) -> ValueRef<'a> {
        ValueRef::Array(a)
    }
}

impl<'a> From<&'a ArrayBuf> for ValueRef<'a> {
    fn from(a: &'a ArrayBuf) -> ValueRef<'a> {
        ValueRef::Array(a.as_raw())
    }
}
